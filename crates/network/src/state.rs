//! Knowledge of a running network for the commands of `weir net`: a file in its folder.
//!
//! The keeper writes it once; commands read it and work in the namespaces that it names. It is
//! trusted only together with the folder's lock.

use std::fs;
use std::path::{Path, PathBuf};

use netdev::sys::netns::Namespace;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::folder;
use crate::plan::{HostPlan, NetworkPlan, PlannedEnd};

const FILE: &str = "network.json";
/// Longest state that is read, in bytes.
const STATE_MAX: u64 = 16 << 20;

/// A running network.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NetworkState {
    /// Its name.
    pub name: String,
    /// The process that keeps it.
    pub pid: u32,
    /// Unix socket at which its switches look for the controller.
    pub controller: PathBuf,
    /// The control socket of its switches, for `weir ctl --control`.
    pub control: PathBuf,
    /// Socket at which the keeper reports the hosts' counts.
    pub stats: PathBuf,
    /// The namespace of the switches.
    pub switch_namespace: PathBuf,
    /// The namespaces of the hosts, in the plan's order.
    pub host_namespaces: Vec<PathBuf>,
    /// Its plan.
    pub plan: NetworkPlan,
}

/// A host of a running network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LivingHost<'a> {
    pub(crate) plan: &'a HostPlan,
    namespace: &'a Path,
}

impl LivingHost<'_> {
    /// A handle of its namespace.
    pub(crate) fn namespace(&self) -> Result<Namespace, Error> {
        open(self.namespace, &self.plan.name)
    }
}

fn open(path: &Path, whose: &str) -> Result<Namespace, Error> {
    Namespace::open(path).map_err(|source| {
        let what = format!("the network namespace of {whose}, {}", path.display());
        if source.kind() == std::io::ErrorKind::PermissionDenied {
            return Error::NotRoot(source);
        }
        Error::Io { what, source }
    })
}

impl NetworkState {
    /// Writes it into the network's folder, whole or not at all.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Error> {
        let path = folder.join(FILE);
        let fresh = folder.join("network.json.new");
        let text = serde_json::to_string(self)
            .map_err(|error| Error::io("writing the network's state")(error.into()))?;
        fs::write(&fresh, text).map_err(Error::at("writing", &fresh))?;
        fs::rename(&fresh, &path).map_err(Error::at("writing", &path))
    }

    /// The networks below `root` that run and are made.
    pub(crate) fn all(root: &Path) -> Result<Vec<Self>, Error> {
        let mut found = Vec::new();
        for name in folder::living(root)? {
            let path = root.join(name).join(FILE);
            // One that is in the making, or has just gone, has none.
            if !path.exists() {
                continue;
            }
            let failed = |why: String| Error::File { path: path.clone(), why };
            let text = files::read_text(&path, STATE_MAX).map_err(|e| failed(e.to_string()))?;
            found.push(serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?);
        }
        Ok(found)
    }

    /// The network of that name, or the only one.
    pub(crate) fn find(root: &Path, name: Option<&str>) -> Result<Self, Error> {
        let mut all = Self::all(root)?;
        let names = || all.iter().map(|network| network.name.clone()).collect();
        match name {
            Some(name) => {
                let unknown = || Error::Unknown { name: name.to_owned(), there: names() };
                let at = all.iter().position(|network| network.name == name);
                Ok(all.swap_remove(at.ok_or_else(unknown)?))
            }
            None if all.len() > 1 => Err(Error::Several(names())),
            None => all.pop().ok_or(Error::NoNetwork),
        }
    }

    /// All hosts.
    pub(crate) fn hosts(&self) -> Vec<LivingHost<'_>> {
        let both = self.plan.hosts.iter().zip(&self.host_namespaces);
        both.map(|(plan, namespace)| LivingHost { plan, namespace }).collect()
    }

    /// The place of a host in the plan.
    pub(crate) fn place(&self, name: &str) -> Result<usize, Error> {
        self.host(name)?;
        Ok(self.plan.hosts.iter().take_while(|host| host.name != name).count())
    }

    /// The host of that name.
    pub(crate) fn host(&self, name: &str) -> Result<LivingHost<'_>, Error> {
        let found = self.hosts().into_iter().find(|host| host.plan.name == name);
        found.ok_or_else(|| Error::NoSuch {
            what: "host",
            name: name.to_owned(),
            there: self.plan.hosts.iter().map(|host| host.name.clone()).collect(),
        })
    }

    /// The end of a switch's link with another node.
    pub(crate) fn end(&self, switch: &str, other: &str) -> Result<&PlannedEnd, Error> {
        let names =
            |link: &crate::plan::LinkPlan| link.ends.each_ref().map(PlannedEnd::text).join(" - ");
        self.plan.end_towards(switch, other).ok_or_else(|| Error::NoSuch {
            what: "link of a switch",
            name: format!("{switch} - {other}"),
            there: self.plan.links.iter().map(names).collect(),
        })
    }

    /// A handle of the switches' namespace.
    pub(crate) fn switches(&self) -> Result<Namespace, Error> {
        open(&self.switch_namespace, "the switches")
    }
}
