//! Compiles the shim over DPDK, where the cargo feature `dpdk` asks for it; else nothing.
//!
//! It uses the machine's libdpdk as pkg-config describes it, so that what is built fits what is
//! installed. It must never download or choose anything.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    dpdk();
}

#[cfg(not(feature = "dpdk"))]
fn dpdk() {}

#[cfg(feature = "dpdk")]
fn dpdk() {
    let shim = "src/sys/dpdk/shim.c";
    println!("cargo:rerun-if-changed={shim}");
    let found = pkg_config::Config::new().atleast_version("22.11").probe("libdpdk");
    let libdpdk = match found {
        Ok(libdpdk) => libdpdk,
        Err(error) => {
            println!("cargo:warning=the feature dpdk needs libdpdk: apt-get install libdpdk-dev");
            panic!("{error}");
        }
    };
    let mut build = cc::Build::new();
    build.file(shim).includes(&libdpdk.include_paths).opt_level(3);
    // pkg-config's crate leaves out the flags that are neither paths nor names.
    build.flag("-include").flag("rte_config.h").flag("-Wall");
    if std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "x86_64") {
        build.flag("-march=corei7");
    }
    build.flag("-Wno-deprecated-declarations").compile("weir_dpdk_shim");
}
