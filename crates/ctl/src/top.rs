//! `weir ctl top`: the rates of ports, bridges, drops and workers, as they are now.
//!
//! On a terminal it is a page that is drawn anew after each measurement, and keys change its order;
//! elsewhere each measurement is printed whole. A rate is the growth between two answers of the
//! switch, by the time between them.

mod rates;
mod screen;

use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use control::{ControlCommand, ControlLine, CountsRecord};
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::rates::{Counts, Rates};
use self::screen::{Key, Screen};
use super::context::{CommandContext, Execute};
use super::failure::Failure;
use super::socket;

/// Rates of ports, bridges, drops and workers, live; q ends it
#[derive(Args, Clone, Debug)]
#[command(after_help = "Keys: p, b, d and n sort by packets, bytes, drops and number; q ends.

Examples:
  weir ctl top
  weir ctl top --sort drops --interval 5
  weir ctl --json top --once")]
pub(super) struct Top {
    /// The order of the ports, the busiest first
    #[arg(long, value_name = "KEY", value_enum, default_value_t = SortKey::Packets)]
    sort: SortKey,
    /// Seconds between two measurements, also with a fraction, at least 0.1
    #[arg(long, value_name = "SECS", default_value = "1", value_parser = interval)]
    interval: Duration,
    /// Print one measurement and end
    #[arg(long)]
    once: bool,
}

/// An order of the ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SortKey {
    /// Packets a second, both ways
    Packets,
    /// Bytes a second, both ways
    Bytes,
    /// Drops a second, both ways
    Drops,
    /// By bridge and number
    Number,
}

fn interval(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is no number of seconds"))?;
    let is_allowed = (0.1..=86_400.0).contains(&seconds);
    let why = || "from 0.1 to 86400 seconds".to_owned();
    is_allowed.then(|| Duration::from_secs_f64(seconds)).ok_or_else(why)
}

/// The next thing to do.
enum Next {
    Measure,
    Draw,
    End,
}

impl Execute for Top {
    async fn execute(mut self, context: &mut CommandContext<'_>) -> Result<(), Failure> {
        let mut ending = Ending::new()?;
        let mut before = counts(context).await?;
        // It gives the terminal back when it is dropped.
        let mut screen = match context.out.is_for_people() && !self.once {
            true => Some(Screen::begin()?),
            false => None,
        };
        let mut rates = None;
        let mut due = tokio::time::Instant::now() + self.interval;
        loop {
            match self.next(due, &mut ending, screen.as_mut()).await {
                Next::End => return Ok(()),
                Next::Draw => {}
                Next::Measure => {
                    let now = counts(context).await?;
                    rates = Some(Rates::between(&before, &now));
                    before = now;
                    due = tokio::time::Instant::now() + self.interval;
                }
            }
            let Some(rates) = &mut rates else { continue };
            rates.sort(self.sort);
            match &screen {
                Some(_) => {
                    let (width, rows) = terminal::size().unwrap_or((80, 24));
                    context.out.screen(&rates.page(self.sort, width, rows))?;
                }
                None => {
                    let text = rates.lines(context.out.width(), usize::MAX).join("\n");
                    context.out.record(text + "\n", || rates.value())?;
                }
            }
            context.out.flush()?;
            if self.once {
                return Ok(());
            }
        }
    }
}

impl Top {
    /// Waits for the next measurement, a key, or the end.
    async fn next(
        &mut self,
        due: tokio::time::Instant,
        ending: &mut Ending,
        screen: Option<&mut Screen>,
    ) -> Next {
        let key = async {
            match screen {
                Some(screen) => screen.key().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = tokio::time::sleep_until(due) => Next::Measure,
            () = ending.come() => Next::End,
            key = key => match key {
                Key::Quit => Next::End,
                Key::Sort(sort) => {
                    self.sort = sort;
                    Next::Draw
                }
                Key::Other => Next::Draw,
            },
        }
    }
}

/// The signals that end it.
struct Ending([Signal; 3]);

impl Ending {
    fn new() -> Result<Self, Failure> {
        let caught = |kind| signal(kind).map_err(|error| Failure::refused(error.to_string()));
        let (interrupt, terminate) = (SignalKind::interrupt(), SignalKind::terminate());
        Ok(Self([caught(interrupt)?, caught(terminate)?, caught(SignalKind::hangup())?]))
    }

    async fn come(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

/// The counts of now.
async fn counts(context: &CommandContext<'_>) -> Result<Counts, Failure> {
    let lines = socket::records(context.place, ControlCommand::Counts, true).await?;
    let mut counts = Counts::at(Instant::now());
    for line in lines {
        let ControlLine::Value(value) = line else { continue };
        match serde_json::from_value(value) {
            Ok(CountsRecord::Bridge(bridge)) => counts.bridges.push(bridge),
            Ok(CountsRecord::Worker(worker)) => counts.workers.push(worker),
            Err(error) => {
                let why = format!("the switch gave another answer than asked: {error}");
                return Err(Failure::refused(why));
            }
        }
    }
    Ok(counts)
}
