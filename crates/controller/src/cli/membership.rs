//! The options of `weir controller` that make it a node of a cluster.

use clap::Args;
use cluster::{ClusterAddress, ClusterSettings, EtcdPairFiles, EtcdTlsFiles, KeyName};
use openflow::text::decimal_where;
use std::path::PathBuf;
use std::time::Duration;

/// The cluster that a controller joins, and its name there.
#[derive(Clone, Debug, Args)]
pub struct MembershipArgs {
    /// Share switches with the other controllers of a cluster: each switch has one master, decided
    /// in this etcd, for example etcd:http://127.0.0.1:2379, or etcd:https://HOST with
    /// --cluster-ca (several servers joined by commas)
    #[arg(long, value_name = "ADDRESS")]
    pub cluster: Option<ClusterAddress>,

    /// TLS to etcd: the certificate of the CA that signs etcd's, in PEM; etcd's must be for the
    /// host of the address
    #[arg(long, value_name = "FILE", requires = "cluster")]
    pub cluster_ca: Option<PathBuf>,

    /// TLS to etcd: this node's certificate, in PEM, for an etcd that asks for one
    #[arg(long, value_name = "FILE", requires_all = ["cluster_ca", "cluster_private_key"])]
    pub cluster_certificate: Option<PathBuf>,

    /// TLS to etcd: the key of that certificate, in PEM without a passphrase
    #[arg(long, value_name = "FILE", requires = "cluster_certificate")]
    pub cluster_private_key: Option<PathBuf>,

    /// The cluster's name: several may share an etcd
    #[arg(long, value_name = "NAME", default_value = "weir", requires = "cluster")]
    pub cluster_name: KeyName,

    /// This node, unlike all others of the cluster [default: the machine's name and the process's
    /// number]
    #[arg(long, value_name = "ID", requires = "cluster")]
    pub node_id: Option<KeyName>,

    /// Seconds after the death of a node until its switches get a new master, but for half a
    /// second of etcd's own; etcd has a least of its own, two with its defaults
    #[arg(
        long,
        value_name = "S",
        default_value_t = cluster::DEFAULT_TTL.as_secs(),
        value_parser = parse_ttl,
        requires = "cluster"
    )]
    pub cluster_ttl: u64,
}

fn parse_ttl(text: &str) -> Result<u64, String> {
    decimal_where(text, |seconds| (1..=600).contains(seconds), "a number of seconds from 1 to 600")
}

impl MembershipArgs {
    /// The settings, if there is a cluster.
    pub(super) fn settings(&self) -> Option<ClusterSettings> {
        let address = self.cluster.clone()?;
        let host = rustix::system::uname();
        let host = host.nodename().to_string_lossy().into_owned();
        let node = self.node_id.clone();
        let node = node.unwrap_or_else(|| cluster::default_node(&host, std::process::id()));
        let settings = ClusterSettings::new(address, self.cluster_name.clone(), node);
        let ttl = Duration::from_secs(self.cluster_ttl);
        Some(ClusterSettings { ttl, tls: self.tls_files(), ..settings })
    }

    fn tls_files(&self) -> Option<EtcdTlsFiles> {
        let files = (self.cluster_certificate.clone(), self.cluster_private_key.clone());
        let pair = match files {
            (Some(certificate), Some(private_key)) => {
                Some(EtcdPairFiles { certificate, private_key })
            }
            (Some(_) | None, _) => None,
        };
        Some(EtcdTlsFiles { ca: self.cluster_ca.clone()?, pair })
    }
}
