//! Catalogue of the engine from its declarations: names, parameters, ranges, sources.

use aqmlab_aqm::{Discipline, QueueConfig};
use aqmlab_core::{Config, Kind, ParamSpec, ParamType};
use aqmlab_quic::Library;
use aqmlab_sim::workload::Workload;
use aqmlab_tcp::congestion::ControlParams;

use crate::json;

/// Returns all catalogues as JSON.
pub fn all() -> String {
    json::object([
        ("version", json::text(env!("CARGO_PKG_VERSION"))),
        ("queues", of::<dyn Discipline>()),
        ("fixed", fixed()),
        ("controls", of::<dyn ControlParams>()),
        ("quic", quic()),
        ("workloads", of::<dyn Workload>()),
        ("reasons", json::list(aqmlab_aqm::Reason::ALL.map(|reason| json::text(reason.name())))),
    ])
}

/// Returns the controllers of the QUIC libraries.
fn quic() -> String {
    json::list([Library::Noq, Library::Quinn].into_iter().flat_map(|library| {
        library.controllers().map(|controller| {
            let [stack, controller] = [library.to_text(), controller.to_text()];
            let summary = format!("QUIC: the library {stack}, with its {controller}.");
            json::object([
                ("name", json::text(&format!("{stack}:{controller}"))),
                ("summary", json::text(&summary)),
            ])
        })
    }))
}

/// Returns the parameters that cannot change during a run, by discipline.
fn fixed() -> String {
    let names = QueueConfig::entries().into_iter().map(|entry| entry.name);
    json::object(names.map(|name| {
        let config = QueueConfig::named(name).expect("it is in the catalogue");
        (name, json::list(config.fixed().iter().map(|key| json::text(key))))
    }))
}

/// Returns the entries of a catalogue and its presets.
fn of<K: Kind + ?Sized>() -> String {
    let entries = Config::<K>::entries().into_iter().map(|entry| {
        let params = json::list(entry.params.iter().map(param));
        json::object([
            ("name", json::text(entry.name)),
            ("summary", json::text(entry.summary)),
            ("params", params),
        ])
    });
    let presets = K::PRESETS.iter().map(|preset| {
        let settings = preset.settings.iter().map(|(key, value)| (*key, json::text(value)));
        json::object([
            ("name", json::text(preset.name)),
            ("summary", json::text(preset.summary)),
            ("of", json::text(preset.of)),
            ("settings", json::object(settings)),
            ("params", json::list(preset.params::<K>().iter().map(param))),
        ])
    });
    json::list(entries.chain(presets))
}

fn param(spec: &ParamSpec) -> String {
    let optional = |value: Option<&String>| value.map_or("null".into(), |text| json::text(text));
    json::object([
        ("name", json::text(spec.name)),
        ("kind", json::text(spec.kind)),
        ("default", optional(spec.default.as_ref())),
        ("low", optional(spec.range.as_ref().map(|(low, _)| low))),
        ("high", optional(spec.range.as_ref().map(|(_, high)| high))),
        ("choices", json::list(spec.choices.iter().map(|choice| json::text(choice)))),
        ("meaning", json::text(spec.meaning)),
        ("source", json::text(spec.source)),
    ])
}
