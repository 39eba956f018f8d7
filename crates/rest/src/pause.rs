//! A pause in long work: all requests are served by one thread.

/// Values that become text before other requests get their turn.
pub(crate) const VALUES_A_TURN: usize = 256;

/// Lets other requests have their turn after [`VALUES_A_TURN`] values; `index` counts them.
pub(crate) async fn pause(index: usize) {
    if index % VALUES_A_TURN == VALUES_A_TURN - 1 {
        tokio::task::yield_now().await;
    }
}
