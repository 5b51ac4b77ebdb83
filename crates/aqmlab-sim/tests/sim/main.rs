//! Simulations through the crate's interface, in one program: each more is linked once more.

mod common;

mod accounts;
mod ack_filter;
mod baselines;
mod bbr;
mod congestion;
mod dctcp;
mod delays;
mod diagnosis;
mod directions;
mod ecn;
mod egress;
mod links;
mod media;
mod pacing;
mod prague;
mod profiles;
mod properties;
mod receive_window;
mod responsiveness;
mod routes;
mod settings;
mod steered_senders;
mod steering;
mod stepping;
mod streaming;
mod tfrc;
mod transfers;
mod waits;
mod web;
mod workloads;
