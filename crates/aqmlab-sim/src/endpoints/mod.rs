//! Endpoints: what sends packets into the network and takes what comes out.

pub mod datagram;
pub(crate) mod flow;
pub(crate) mod packet;
