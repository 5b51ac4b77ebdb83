//! Reads and plays scripts.

use aqmlab_core::{Ecn, Span, Table, Time, Value};
use aqmlab_tcp::{Ack, DataSegment, Receiver, Sender, TcpParams, Timestamps};

const MSS: u64 = 1000;

/// One case: settings (each with the values it is played with) and lines.
struct Case<'a> {
    name: &'a str,
    settings: Vec<(&'a str, Vec<&'a str>)>,
    size: Option<u64>,
    receiver: bool,
    lines: Vec<&'a str>,
}

/// Plays every case of a file.
pub fn run(file: &str, text: &str) {
    let cases = read(text);
    assert!(!cases.is_empty(), "{file}: no cases");
    for case in cases {
        let mut plays = vec![Vec::new()];
        for (key, values) in &case.settings {
            plays = values
                .iter()
                .flat_map(|value| {
                    plays.iter().map(move |play: &Vec<(&str, &str)>| {
                        let mut play = play.clone();
                        play.push((key, value));
                        play
                    })
                })
                .collect();
        }
        for settings in plays {
            let place = format!("{file}, `{}` {settings:?}", case.name);
            let params = params(&settings, &place);
            match case.receiver {
                true => play_receiver(&params, &case, &place),
                false => play_sender(&params, &case, &place),
            }
        }
    }
}

fn read(text: &str) -> Vec<Case<'_>> {
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(name) = line.strip_prefix("==") {
            cases.push(Case {
                name: name.trim(),
                settings: Vec::new(),
                size: None,
                receiver: false,
                lines: Vec::new(),
            });
            continue;
        }
        if line.is_empty() {
            continue;
        }
        let case = cases.last_mut().unwrap_or_else(|| panic!("`{line}` before any `==`"));
        if let Some(setting) = line.strip_prefix("set ") {
            let (key, values) = setting.split_once('=').expect("set key = value");
            case.settings.push((key.trim(), values.split('|').map(str::trim).collect()));
        } else if let Some(size) = line.strip_prefix("size ") {
            case.size = Some(number(size));
        } else if line == "receiver" {
            case.receiver = true;
        } else {
            case.lines.push(line);
        }
    }
    cases
}

fn params(settings: &[(&str, &str)], place: &str) -> TcpParams {
    let mut table = Table::new();
    for (key, value) in [("mss", "1000b")].iter().chain(settings) {
        table.set_key(key, Value::from(*value)).expect("keys are well formed");
    }
    let mut params = TcpParams::rfc();
    params.read(&table).unwrap_or_else(|error| panic!("{place}: {error}"));
    params.check().unwrap_or_else(|error| panic!("{place}: {error}"));
    params
}

fn number(text: &str) -> u64 {
    text.trim().parse().unwrap_or_else(|_| panic!("`{text}` is not a number"))
}

/// Milliseconds, with decimals.
fn nanos(text: &str) -> u64 {
    let millis: f64 = text.parse().unwrap_or_else(|_| panic!("`{text}` is not a time"));
    (millis * 1e6).round() as u64
}

/// `3` or `2.5` segments, in bytes.
fn bytes(text: &str) -> u64 {
    let segments: f64 = text.parse().unwrap_or_else(|_| panic!("`{text}` is not a number"));
    (segments * MSS as f64).round() as u64
}

/// A line: time, event, segments sent, state afterwards.
fn split(line: &str) -> (Time, Vec<&str>, &str, Vec<&str>) {
    let (action, result) = line.split_once("->").unwrap_or_else(|| panic!("no arrow in `{line}`"));
    let (sent, state) = result.split_once('|').unwrap_or((result, ""));
    let mut words = action.split_whitespace();
    let time = Time::ZERO + Span::from_nanos(nanos(words.next().expect("a time")));
    (time, words.collect(), sent.trim(), state.split_whitespace().collect())
}

fn play_sender(params: &TcpParams, case: &Case, place: &str) {
    let mut sender = Sender::new(params, case.size.map(|segments| segments * MSS), 0);
    let mut acked = 0;
    for line in &case.lines {
        let (now, words, expected, state) = split(line);
        match words[0] {
            "open" => sender.open(now),
            "supply" => sender.write(bytes(words[1])),
            "timer" => {
                let next = sender.next_timeout();
                assert_eq!(next, Some(now), "{place}: the timer in `{line}`");
                sender.on_timeout(now);
            }
            _ => {
                let ack = read_ack(now, &words, &mut acked);
                sender.on_ack(now, &ack);
            }
        }
        let sent: Vec<String> = std::iter::from_fn(|| sender.poll(now)).map(segment_text).collect();
        assert_eq!(sent.join(" "), compact(expected), "{place}: what is sent in `{line}`");
        for pair in state.chunks(2) {
            let found = value_text(&sender, pair[0]);
            assert_eq!(found, pair[1], "{place}: {} in `{line}`", pair[0]);
        }
    }
}

/// A value of the sender as scripts have it: windows in segments, times in milliseconds.
fn value_text(sender: &Sender, name: &str) -> String {
    let segments = |bytes: u64| (bytes as f64 / MSS as f64).to_string();
    let millis = |nanos: Option<u64>| match nanos {
        Some(nanos) => (nanos as f64 / 1e6).to_string(),
        None => "none".to_string(),
    };
    let stats = sender.stats();
    match name {
        "cwnd" => segments(sender.cwnd()),
        "ssthresh" => segments(sender.ssthresh()),
        "in_flight" => segments(sender.bytes_in_flight()),
        "rto" => millis(Some(sender.rto().as_nanos())),
        "srtt" => millis(sender.srtt().map(Span::as_nanos)),
        "next" => millis(sender.next_timeout().map(Time::as_nanos)),
        "finished" => if sender.is_finished() { "yes" } else { "no" }.to_string(),
        "timeouts" => stats.timeouts.to_string(),
        "recoveries" => stats.fast_retransmits.to_string(),
        "retransmissions" => stats.retransmissions.to_string(),
        "probes" => stats.tail_probes.to_string(),
        "undone" => stats.undone.to_string(),
        "reductions" => stats.ecn_reductions.to_string(),
        other => panic!("`{other}` is not known"),
    }
}

/// Words of an acknowledgement; `acked` is the last cumulative one, which is the default.
fn read_ack(now: Time, words: &[&str], acked: &mut u64) -> Ack {
    let mut ack = Ack { window: 1 << 40, ..Ack::default() };
    let mut key = "";
    for word in words {
        match (key, *word) {
            (_, "syn-ack") => ack.syn = true,
            (_, "dup") => {}
            (_, "ece") => ack.ece = true,
            (_, "ack" | "sack" | "window" | "ce" | "echo") => key = word,
            ("ack", value) => *acked = bytes(value),
            ("window", value) => ack.window = bytes(value),
            ("ce", value) => {
                ack.ce.packets = number(value);
                ack.ce.bytes = number(value) * MSS;
            }
            ("echo", value) => {
                let echo = Time::from_nanos(nanos(value));
                ack.timestamps = Some(Timestamps { value: now, echo });
            }
            ("sack", value) => {
                let (start, end) = value.split_once('-').expect("start-end");
                ack.sack.push(bytes(start), bytes(end));
            }
            (_, other) => panic!("`{other}` is not known"),
        }
    }
    ack.ack = *acked;
    ack
}

fn segment_text(segment: DataSegment) -> String {
    let mut text = match segment.syn {
        true => "syn".to_string(),
        false => (segment.seq / MSS).to_string(),
    };
    text += if segment.len == 0 && !segment.syn { "?" } else { "" };
    text += if segment.retransmission { "r" } else { "" };
    text += match segment.ecn {
        Ecn::NotEct => "",
        Ecn::Ect0 => "e",
        Ecn::Ect1 => "l",
        Ecn::Ce => "!",
    };
    text + if segment.cwr { "w" } else { "" }
}

fn compact(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn play_receiver(params: &TcpParams, case: &Case, place: &str) {
    let mut receiver = Receiver::new(params);
    for line in &case.lines {
        let (now, words, expected, state) = split(line);
        assert!(state.is_empty(), "{place}: a receiver has no state to look at");
        match words[0] {
            "timer" => {
                let next = receiver.next_timeout();
                assert_eq!(next, Some(now), "{place}: the timer in `{line}`");
                receiver.on_timeout(now);
            }
            "syn" => {
                let cwr = words.contains(&"cwr");
                let syn = DataSegment { syn: true, cwr, ..DataSegment::default() };
                receiver.on_segment(now, &syn);
            }
            "data" => receiver.on_segment(now, &read_segment(now, &words[1..])),
            other => panic!("{place}: `{other}` is not known"),
        }
        let sent: Vec<String> = std::iter::from_fn(|| receiver.poll(now)).map(ack_text).collect();
        assert_eq!(sent.join("; "), compact(expected), "{place}: what is sent in `{line}`");
    }
}

fn read_segment(now: Time, words: &[&str]) -> DataSegment {
    let mut segment = DataSegment {
        seq: bytes(words[0]),
        len: MSS as u32,
        sent_at: now,
        ..DataSegment::default()
    };
    let mut words = words[1..].iter();
    while let Some(word) = words.next() {
        match *word {
            "echo" => {
                let millis = words.next().expect("a time");
                segment.echo = Time::ZERO + Span::from_nanos(nanos(millis));
            }
            "ce" => segment.ecn = Ecn::Ce,
            "ect0" => segment.ecn = Ecn::Ect0,
            "ect1" => segment.ecn = Ecn::Ect1,
            "cwr" => segment.cwr = true,
            "short" => segment.len = MSS as u32 / 2,
            "tiny" => segment.len = 100,
            other => panic!("`{other}` is not known"),
        }
    }
    segment
}

fn ack_text(ack: Ack) -> String {
    let segments = |bytes: u64| bytes as f64 / MSS as f64;
    let mut text = match ack.syn {
        true => "syn-ack".to_string(),
        false => format!("ack {}", segments(ack.ack)),
    };
    if !ack.sack.is_empty() {
        text += " sack";
    }
    for &(start, end) in ack.sack.as_slice() {
        text += &format!(" {}-{}", segments(start), segments(end));
    }
    if ack.ece {
        text += " ece";
    }
    if ack.ce.packets > 0 {
        text += &format!(" ce {}", ack.ce.packets);
    }
    if let Some(times) = ack.timestamps {
        text += &format!(" echo {}", times.echo.as_nanos() as f64 / 1e6);
    }
    if ack.window < 1 << 40 {
        text += &format!(" window {}", segments(ack.window));
    }
    text
}
