//! The project's own tasks, in Rust, so that nothing but cargo is needed to run them.
//!
//! `cargo xtask test` runs every test, `cargo xtask tidy` checks the house rules, and
//! `cargo xtask fuzz` looks for inputs that nobody thought of. It imports no crate of the house: it
//! must still run when they do not compile.
#![forbid(unsafe_code)]

mod bars;
mod dist;
mod docs;
mod example;
mod fuzz;
mod graph;
mod instructions;
mod shell;
mod test;
mod tidy;
mod tool;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Tasks of the workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run every test of the project; as root it installs the peers they need
    Test(test::TestOptions),
    /// Run the fuzz targets
    Fuzz(fuzz::FuzzOptions),
    /// Renew the parts of the documentation that programs print, and build it as a book
    Docs(docs::DocsOptions),
    /// Make the packages that people install, in target/dist
    Dist(dist::DistOptions),
    /// Prove that the example of CONTRIBUTING.md still applies, compiles and passes
    Example,
    /// Count the instructions of classifier, caches and codec, and compare with the figures
    Instructions(instructions::InstructionsOptions),
    /// Hold Weir's speed against its bars: lines of `weir lab run ports`, or of `weir lab run
    /// controller-.. --format lines`, from standard input
    Bars,
    /// Check the house rules that a program can check; draws the crate graph
    Tidy,
    /// Draw the crate graph as it is in the manifests
    Graph {
        /// As the table in ARCHITECTURE.md
        #[arg(long)]
        markdown: bool,
    },
}

fn main() -> ExitCode {
    let root = workspace_root();
    let done = match Cli::parse().task {
        Task::Test(options) => match test::run(&root, &options) {
            // The totals show it, and they are the last line.
            Ok(false) => return ExitCode::FAILURE,
            outcome => outcome.map(drop),
        },
        Task::Fuzz(options) => fuzz::run(&root, &options),
        Task::Docs(options) => docs::run(&root, &options).map(|left_out| {
            if let Some(what) = left_out {
                println!("NOT DONE: {what}");
            }
        }),
        Task::Dist(options) => dist::run(&root, &options).map(drop),
        Task::Example => example::run(&root),
        Task::Instructions(options) => instructions::run(&root, &options),
        Task::Bars => bars::run(),
        Task::Tidy => tidy::run(&root),
        Task::Graph { markdown: true } => draw(&root, graph::markdown),
        Task::Graph { markdown: false } => draw(&root, graph::text),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn draw(root: &Path, form: fn(&graph::Graph) -> String) -> anyhow::Result<()> {
    let graph = graph::Graph::from_metadata(&tidy::metadata(root)?)?;
    print!("{}", form(&graph));
    Ok(())
}

/// The folder above `crates/xtask`, where this program was compiled.
fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map_or_else(|| here.to_path_buf(), Path::to_path_buf)
}
