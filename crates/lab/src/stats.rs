//! Statistics of repeated measurements: the one place where the lab has them.
//!
//! Pure functions over samples, named as the literature names them: intervals of means ([`mean`]),
//! of medians and other quantiles ([`order`]), pairs and independent sets compared by ranks
//! ([`signed_rank`], [`mod@mann_whitney`]), bands of distributions ([`band`]), many comparisons
//! ([`multiple`]), how many repeats are needed ([`repeats`]), warm-up ([`steady`]), trends
//! ([`trend`]) and changes of a history ([`change`]). No sample is dropped here; an outlier is only
//! named. An interval must never claim more confidence than it has, and a figure with an interval
//! wider than itself is unknown. The generator has the intervals of what it measures,
//! [`generator::method::Estimate`].

pub mod band;
pub mod change;
#[cfg(test)]
pub(crate) mod distributions;
mod interval;
pub mod mann_whitney;
pub mod mean;
pub mod multiple;
pub mod order;
mod rank;
pub mod repeats;
pub mod signed_rank;
pub mod steady;
mod summary;
pub mod trend;

pub use band::{CdfBand, dkw_reach};
pub use change::{ChangePoint, ChangeSettings, change_points};
pub use interval::{CONFIDENCE, Interval, StatsError};
pub use mann_whitney::{UnpairedRatio, mann_whitney, unpaired_ratio};
pub use mean::{MeanDifference, MeanRatio, mean_interval, ratio_of_means, welch};
pub use multiple::holm;
pub use order::{quantile, quantile_interval, samples_needed};
pub use repeats::{pairs_for_ratio, repeats_for_mean, repeats_for_median};
pub use signed_rank::{
    PairedRatio, RankEstimate, paired_ratio, pairs_needed, wilcoxon_signed_rank,
};
pub use steady::{MSER_BATCH, warm_up};
pub use summary::{Reported, Summary, reported_mean_within, summarise};
pub use trend::theil_sen;

#[cfg(test)]
use interval::sorted;
