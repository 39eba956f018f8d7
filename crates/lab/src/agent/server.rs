//! The agent: does what a lab asks for over a pair of streams, and ends with them.
//!
//! The streams are its standard input and output, and ssh carries them: whoever may log in may do
//! it. A lab that ends, dies or says what is no message ends its agent, and with it all that is
//! open. It must never go on without its lab.

use std::io::{self, BufRead, Write};

use super::executor::Executor;
use super::protocol::{self, AgentHello, AgentRequest, VERSION, Welcome};
use crate::facts::{self, Machine};

/// Answers request after request of a lab until it ends; `take` has its interfaces for so long.
///
/// # Errors
/// A lab that is refused, a message that is none, a stream that fails.
pub fn serve<T>(
    (from, to): (&mut impl BufRead, &mut impl Write),
    mut executor: Executor,
    take: impl FnOnce(&[String]) -> io::Result<T>,
) -> io::Result<()> {
    let Some(line) = protocol::read_line(from)? else { return Ok(()) };
    let hello: AgentHello = protocol::decode(&line)?;
    let taken = match hello.version {
        VERSION => take(&hello.interfaces),
        other => {
            Err(io::Error::other(format!("it speaks version {VERSION}, and this lab {other}")))
        }
    };
    let welcome = Welcome {
        version: VERSION,
        host: facts::host_name(),
        refusal: taken.as_ref().err().map(ToString::to_string),
        weir: env!("CARGO_PKG_VERSION").to_owned(),
        machine: Some(Machine::read()),
    };
    to.write_all(&protocol::encode(&welcome)?)?;
    to.flush()?;
    let _taken = taken?;
    while let Some(line) = protocol::read_line(from)? {
        let received_ns = executor.now_ns();
        let request: AgentRequest = protocol::decode(&line)?;
        let answer = executor.carry_out(request, received_ns);
        to.write_all(&protocol::encode(&answer)?)?;
        to.flush()?;
    }
    Ok(())
}
