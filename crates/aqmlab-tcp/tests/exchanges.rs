//! Scripted exchanges, in the manner of packetdrill: what an end does with
//! given segments at given times. `scripts/README.md` describes the format.

mod script;

macro_rules! scripts {
    ($($name:ident)+) => {
        $(
            #[test]
            fn $name() {
                script::run(stringify!($name), include_str!(concat!("scripts/", stringify!($name), ".txt")));
            }
        )+
    };
}

scripts! {
    handshake
    timeouts
    sack
    newreno
    reno
    limited_transmit
    windows
    ecn
    pacing
    rack
    tail_loss_probe
    prr
    undo
    receiver
    cubic
    reno_growth
    validation
}
