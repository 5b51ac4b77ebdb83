use super::super::RateSample;
use super::super::testing::{ack, event, transport};
use super::*;

fn bbr() -> Bbr3 {
    Bbr3::new(&Bbr3Params::default(), &Setup::new(&transport(), 10_000, 1))
}
