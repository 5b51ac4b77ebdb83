//! Scripted exchanges: what the sender does with given acknowledgements at
//! given times.
//!
//! A line is a time in milliseconds, what happens, and what is sent for it:
//!
//! ```text
//! 0    open          -> syn
//! 100  syn-ack       -> 0 1 2
//! 200  ack 1         -> 3 4      | cwnd 4
//! 210  sack 2-4      -> 5
//! 1210 timer         -> 1r       | cwnd 1 ssthresh 2
//! ```
//!
//! Data are counted in segments of 1000 bytes; `r` marks what was sent
//! before. `ack 3 sack 5-7 window 9` acknowledges 0 to 2, reports 5 and 6 and
//! offers nine segments; `sack` alone and `dup` repeat the last `ack`.
//! `timer` holds that the timer runs out at just that time. What is sent is
//! complete: nothing after the arrow means that nothing is.

use aqmlab_core::{Bytes, Limit, Span, Time};

use crate::{Ack, Recovery, Sender, TcpParams};

const MSS: u64 = 1000;

fn params(recovery: Recovery, initial_window: u64) -> TcpParams {
    TcpParams {
        mss: Bytes::new(MSS),
        initial_window: Limit::Packets(initial_window),
        recovery,
        ..TcpParams::default()
    }
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("`{text}` is not a number"))
}

/// Runs a script; gives the sender as it is at its end.
fn play(params: &TcpParams, segments: Option<u64>, script: &str) -> Sender {
    let mut sender = Sender::new(params, segments.map(|segments| segments * MSS), 0);
    let mut acked = 0;
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (action, expected) = line.split_once("->").expect("an arrow in every line");
        let (expected, state) = expected.split_once('|').unwrap_or((expected, ""));
        let mut words = action.split_whitespace().peekable();
        let now = Time::ZERO + Span::from_millis(number(words.next().unwrap()));
        match words.peek().copied() {
            Some("open") => sender.open(now),
            Some("timer") => {
                assert_eq!(sender.next_timeout(), Some(now), "the timer in `{line}`");
                sender.on_timeout(now);
            }
            _ => {
                let mut ack = Ack { window: 1 << 40, ..Ack::default() };
                let mut key = "";
                for word in words {
                    match (key, word.split_once('-')) {
                        (_, Some(("syn", "ack"))) => ack.syn = true,
                        ("ack", None) if word != "sack" && word != "window" => {
                            acked = number(word) * MSS;
                        }
                        ("window", _) => ack.window = number(word) * MSS,
                        ("sack", Some((start, end))) => {
                            ack.sack.push(number(start) * MSS, number(end) * MSS);
                            continue;
                        }
                        _ => {}
                    }
                    key = word;
                }
                ack.ack = acked;
                sender.on_ack(now, &ack);
            }
        }
        let sent: Vec<String> = std::iter::from_fn(|| sender.poll(now))
            .map(|segment| {
                let name = match segment.syn {
                    true => "syn".to_string(),
                    false => (segment.seq / MSS).to_string(),
                };
                name + if segment.retransmission { "r" } else { "" }
            })
            .collect();
        let expected: Vec<&str> = expected.split_whitespace().collect();
        assert_eq!(sent, expected, "what is sent in `{line}`");
        let state: Vec<&str> = state.split_whitespace().collect();
        for pair in state.chunks(2) {
            let (got, unit) = match pair[0] {
                "cwnd" => (sender.cwnd(), MSS),
                "ssthresh" => (sender.ssthresh(), MSS),
                "rto" => (sender.rto().as_nanos(), 1_000_000),
                "srtt" => (sender.srtt().unwrap().as_nanos(), 1_000_000),
                other => panic!("`{other}` is not known"),
            };
            assert_eq!(got, number(pair[1]) * unit, "{} in `{line}`", pair[0]);
        }
    }
    sender
}

/// RFC 6298 (5.5) to (5.7); RFC 5681, section 3.1: one segment after a lost
/// SYN.
#[test]
fn a_lost_syn_backs_off_and_data_begin_with_one_segment_and_three_seconds() {
    let sender = play(
        &params(Recovery::Sack, 10),
        None,
        "0     open     -> syn
         1000  timer    -> synr
         3000  timer    -> synr
         7000  timer    -> synr
         7100  syn-ack  -> 0      | cwnd 1 rto 3000
         7150  syn-ack  ->
         10100 timer    -> 0r     | cwnd 1 rto 6000",
    );
    assert_eq!(sender.srtt(), None, "Karn: no sample of a SYN sent twice");
}

/// RFC 6298 (5.4) to (5.6), Karn's rule; RFC 5681, section 3.1: ssthresh is
/// held when the same segment times out again.
#[test]
fn timeouts_back_off_until_a_segment_sent_once_is_acknowledged() {
    for recovery in [Recovery::Sack, Recovery::NewReno] {
        play(
            &params(recovery, 4),
            None,
            "0    open     -> syn
             100  syn-ack  -> 0 1 2 3    | cwnd 4 rto 1000
             1100 timer    -> 0r         | cwnd 1 ssthresh 2 rto 2000
             3100 timer    -> 0r         | cwnd 1 ssthresh 2 rto 4000
             3200 ack 1    -> 1r 2r      | cwnd 2 rto 4000
             3300 ack 3    -> 3r 4
             3400 ack 4    -> 5          | rto 4000
             3410 ack 5    -> 6 7        | rto 1000
             4410 timer    -> 5r         | cwnd 1 ssthresh 2 rto 2000",
        );
    }
}

/// RFC 6675, section 5; RFC 3042 before the recovery.
#[test]
fn sack_mends_one_loss_within_a_round_trip() {
    let sender = play(
        &params(Recovery::Sack, 10),
        None,
        "0   open         -> syn
         100 syn-ack      -> 0 1 2 3 4 5 6 7 8 9
         200 ack 1        -> 10 11
         200 ack 2        -> 12 13     | cwnd 12
         200 sack 3-4     -> 14        | cwnd 12
         200 sack 3-5     -> 15        | cwnd 12
         200 sack 3-6     -> 2r        | cwnd 6 ssthresh 6
         200 sack 3-7     ->
         200 sack 3-8     ->
         200 sack 3-9     ->
         200 sack 3-10    ->
         300 sack 3-11    ->
         300 sack 3-12    -> 16
         300 sack 3-13    -> 17
         300 sack 3-14    -> 18
         300 sack 3-15    -> 19
         300 sack 3-16    -> 20        | cwnd 6
         450 ack 16       -> 21        | cwnd 6 srtt 100",
    );
    assert_eq!(sender.stats().fast_retransmits, 1);
    assert_eq!(sender.stats().retransmissions, 1);
}

/// The second loss is found by the SACKed data above it: one halving.
#[test]
fn sack_mends_two_losses_in_one_recovery() {
    let sender = play(
        &params(Recovery::Sack, 10),
        None,
        "0   open           -> syn
         100 syn-ack        -> 0 1 2 3 4 5 6 7 8 9
         200 ack 1          -> 10 11
         200 ack 2          -> 12 13
         200 sack 3-4       -> 14
         200 sack 3-5       -> 15
         200 sack 6-7 3-5   -> 2r       | cwnd 6
         200 sack 6-8 3-5   ->
         200 sack 6-9 3-5   ->
         200 sack 6-10 3-5  ->
         300 sack 6-11 3-5  ->
         300 sack 6-12 3-5  -> 5r
         300 sack 6-13 3-5  -> 16
         300 sack 6-14 3-5  -> 17
         300 sack 6-15 3-5  -> 18
         300 sack 6-16 3-5  -> 19
         300 ack 5 sack 6-16 -> 20      | cwnd 6
         400 ack 16         -> 21       | cwnd 6 ssthresh 6",
    );
    assert_eq!(sender.stats().fast_retransmits, 1);
}

/// RFC 6675, section 4, IsLost: three runs, or more than two segments.
#[test]
fn three_separate_runs_or_three_segments_mean_a_loss() {
    play(
        &params(Recovery::Sack, 10),
        None,
        "0   open             -> syn
         100 syn-ack          -> 0 1 2 3 4 5 6 7 8 9
         200 sack 2-3         -> 10
         200 sack 8-9 6-7 4-5 2-3 -> 0r | cwnd 5",
    );
    // One acknowledgement that tells of three segments is enough.
    play(
        &params(Recovery::Sack, 10),
        None,
        "0   open       -> syn
         100 syn-ack    -> 0 1 2 3 4 5 6 7 8 9
         200 sack 1-4   -> 0r",
    );
}

/// RFC 6582: partial acknowledgements send the next loss again.
#[test]
fn newreno_mends_one_loss_a_round_trip() {
    play(
        &params(Recovery::NewReno, 10),
        None,
        "0   open      -> syn
         100 syn-ack   -> 0 1 2 3 4 5 6 7 8 9
         200 ack 1     -> 10 11
         200 ack 2     -> 12 13     | cwnd 12
         200 dup       -> 14        | cwnd 12
         200 dup       -> 15        | cwnd 12
         200 dup       -> 2r        | cwnd 9 ssthresh 6
         200 dup       ->
         200 dup       ->
         200 dup       ->
         300 dup       ->
         300 dup       ->
         300 dup       -> 16
         300 dup       -> 17
         300 dup       -> 18
         300 dup       -> 19        | cwnd 18
         300 ack 5     -> 5r 20     | cwnd 16
         400 dup       -> 21
         400 dup       -> 22
         400 dup       -> 23
         400 dup       -> 24        | cwnd 20
         400 ack 20    -> 25        | cwnd 6 ssthresh 6",
    );
}

/// RFC 6582, section 3.2, step 2, and section 4: duplicates that do not cover
/// more than `recover` come of segments sent again in vain.
#[test]
fn newreno_ignores_duplicates_of_its_own_retransmissions() {
    play(
        &params(Recovery::NewReno, 4),
        None,
        "0    open     -> syn
         100  syn-ack  -> 0 1 2 3
         1100 timer    -> 0r         | cwnd 1 ssthresh 2
         1200 ack 4    -> 4 5        | cwnd 2
         1200 dup      -> 6
         1200 dup      -> 7
         1200 dup      ->            | cwnd 2 ssthresh 2
         1300 ack 5    ->
         1300 ack 6    ->
         1300 ack 7    -> 8 9",
    );
}

/// RFC 3042: two segments beyond the window, and the window unchanged.
#[test]
fn limited_transmit_reaches_the_third_duplicate_with_a_window_of_three() {
    for recovery in [Recovery::Sack, Recovery::Sack1] {
        play(
            &params(recovery, 3),
            None,
            "0   open      -> syn
             100 syn-ack   -> 0 1 2
             200 sack 1-2  -> 3       | cwnd 3
             200 sack 1-3  -> 4       | cwnd 3",
        );
    }
    let script = "0    open      -> syn
                  100  syn-ack   -> 0 1 2
                  200  sack 1-2  ->
                  200  sack 1-3  ->
                  1100 timer     -> 0r   | cwnd 1 ssthresh 2";
    for recovery in [Recovery::Sack, Recovery::Sack1, Recovery::NewReno] {
        play(&TcpParams { limited_transmit: false, ..params(recovery, 3) }, None, script);
    }
}

/// RFC 5681, section 3.2: what limited transmit sent is not in FlightSize.
#[test]
fn the_window_is_halved_without_what_limited_transmit_sent() {
    play(
        &params(Recovery::Sack, 6),
        None,
        "0   open      -> syn
         100 syn-ack   -> 0 1 2 3 4 5
         200 sack 1-2  -> 6
         200 sack 1-3  -> 7
         200 sack 1-4  -> 0r       | cwnd 3 ssthresh 3",
    );
}

/// RFC 6675, section 4, NextSeg, rule 4: once a recovery, and only after the
/// first retransmission has arrived.
#[test]
fn the_last_segment_is_rescued_without_a_timeout() {
    let sender = play(
        &params(Recovery::Sack, 10),
        Some(10),
        "0   open       -> syn
         100 syn-ack    -> 0 1 2 3 4 5 6 7 8 9
         200 sack 1-2   ->
         200 sack 1-3   ->
         200 sack 1-4   -> 0r       | cwnd 5
         200 sack 1-5   ->
         200 sack 1-6   ->
         200 sack 1-7   ->
         200 sack 1-8   ->
         200 sack 1-9   ->
         300 ack 9      -> 9r
         400 ack 10     ->",
    );
    assert!(sender.is_finished());
    assert_eq!(sender.stats().timeouts, 0);
    assert_eq!(sender.next_timeout(), None, "RFC 6298 (5.2)");
}

/// Without anything above it, only the timer finds the loss of the last.
#[test]
fn a_lost_tail_waits_for_the_timer() {
    let sender = play(
        &params(Recovery::Sack, 10),
        Some(5),
        "0    open     -> syn
         100  syn-ack  -> 0 1 2 3 4
         200  ack 2    ->
         210  ack 4    ->
         1210 timer    -> 4r    | cwnd 1 ssthresh 2
         1310 ack 5    ->",
    );
    assert!(sender.is_finished());
    assert_eq!(sender.next_timeout(), None);
}

/// RFC 2018, section 8: a receiver may have forgotten what it reported. Then
/// it does not acknowledge it when the gap before it is filled.
#[test]
fn what_a_receiver_has_reneged_on_is_sent_again() {
    play(
        &params(Recovery::Sack, 6),
        None,
        "0    open       -> syn
         100  syn-ack    -> 0 1 2 3 4 5
         200  sack 1-4   -> 0r
         1200 timer      -> 0r      | cwnd 1 rto 2000
         1300 ack 1      -> 1r 2r   | cwnd 2",
    );
    // What was reported and not reneged on is left out (RFC 6675, section
    // 5.1), whether or not it is reported again.
    play(
        &params(Recovery::Sack, 6),
        None,
        "0    open           -> syn
         100  syn-ack        -> 0 1 2 3 4 5
         200  sack 1-4       -> 0r
         1200 timer          -> 0r      | cwnd 1
         1300 ack 1 sack 2-4 -> 1r 4r   | cwnd 2",
    );
}

/// RFC 6675, section 5.1: no recovery within the data of a timeout.
#[test]
fn no_recovery_begins_before_the_data_of_a_timeout_are_through() {
    let sender = play(
        &params(Recovery::Sack, 6),
        None,
        "0    open       -> syn
         100  syn-ack    -> 0 1 2 3 4 5
         1100 timer      -> 0r      | cwnd 1 ssthresh 3
         1150 sack 1-2   ->
         1160 sack 1-3   ->
         1170 sack 1-4   ->         | cwnd 1 ssthresh 3",
    );
    assert_eq!(sender.stats().fast_retransmits, 0);
}

/// RFC 9293, section 3.8.6.
#[test]
fn the_receiver_s_window_is_kept_to() {
    play(
        &params(Recovery::Sack, 10),
        None,
        "0   open              -> syn
         100 syn-ack window 2  -> 0 1
         200 ack 1 window 2    -> 2      | cwnd 10
         210 ack 2 window 1    ->
         220 ack 3 window 3    -> 3 4 5  | cwnd 10",
    );
}

/// What was never sent cannot be acknowledged; what was acknowledged before
/// changes nothing.
#[test]
fn acknowledgements_from_elsewhere_change_nothing() {
    play(
        &params(Recovery::Sack, 2),
        None,
        "0   open           -> syn
         100 syn-ack        -> 0 1
         200 ack 9          ->        | cwnd 2
         210 ack 2          -> 2 3 4
         220 ack 1          ->
         220 ack 2 sack 7-9 ->
         230 ack 4          -> 5 6 7",
    );
}
