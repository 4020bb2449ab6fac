//! A run as OpenTelemetry metrics: the request of OTLP/HTTP in its JSON form, written by hand.
//!
//! ```text
//! Run ─▶ mod.rs: a resource for each rank, and one for each machine
//!          ├─ training.rs    steps, phases, the gap, work, findings, what is missing
//!          ├─ readings.rs    sensors and energy; names.rs: what the semantic conventions call them
//!          └─ metrics.rs     sums, gauges and histograms as JSON ◀─ exponential.rs: the buckets of a histogram
//! ```
//!
//! The JSON is that of proto3 with the protocol's exceptions: field names in lowerCamelCase, 64-bit integers as text, enums as
//! numbers (<https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>). All sums and histograms are cumulative, so a
//! request that gets lost costs resolution and no data.

mod exponential;
mod metrics;
mod names;
mod readings;
mod training;

use std::collections::HashSet;

use serde_json::{Value, json};

use gnntop_analysis::catalogue::Catalogue;
use gnntop_analysis::energy::Assumptions;
use gnntop_analysis::findings::Judgement;
use gnntop_analysis::ranks::Run;
use gnntop_analysis::store::Store;
use gnntop_wire::SessionInfo;
use metrics::{Attributes, Metrics, attributes};

/// What a request says of its sender, and which ranks are in it.
#[derive(Clone, Debug, Default)]
pub struct OtlpResource {
    /// `service.name`; `None` for the session's name.
    pub service_name: Option<String>,
    /// Further attributes, which replace those of the same name.
    pub attributes: Vec<(String, String)>,
    /// Only ranks on the host of this name; `None` for all.
    pub host: Option<String>,
}

/// The figures of a run so far as the body of a request, an `ExportMetricsServiceRequest`; `None` if no session has begun.
pub fn encode(run: &Run, judgement: &Judgement, assumptions: &Assumptions, resource: &OtlpResource) -> Option<Value> {
    let (mut machines, mut processes) = (HashSet::new(), HashSet::new());
    let mut all = Vec::new();
    for store in stores(run) {
        let Some(info) = store.session().info() else { continue };
        if resource.host.as_ref().is_some_and(|host| *host != info.host) {
            continue;
        }
        let catalogue = Catalogue::new(store).with_assumptions(assumptions.clone());
        let is_selected = std::ptr::eq(store, run.store());
        let catalogue = if is_selected { catalogue.with_judgement(judgement.clone()) } else { catalogue };
        let mut of_rank = Metrics::new(store);
        training::add(&mut of_rank, &catalogue, is_selected);
        if processes.insert((&info.host, info.pid)) {
            readings::add_process(&mut of_rank, &catalogue);
        }
        all.push(of_resource(resource.attributes_of_rank(info), of_rank));
        // Each rank's sensors see the whole machine.
        if machines.insert(&info.host) {
            let mut of_machine = Metrics::new(store);
            readings::add_machine(&mut of_machine, &catalogue);
            all.push(of_resource(resource.attributes_of_machine(info), of_machine));
        }
    }
    all.retain(|resource| !resource["scopeMetrics"][0]["metrics"].as_array().is_none_or(Vec::is_empty));
    (!all.is_empty()).then(|| json!({ "resourceMetrics": all }))
}

/// The current session of each rank; the only one of a run without ranks.
fn stores(run: &Run) -> Vec<&Store> {
    let ranks: Vec<&Store> = run.ranks().all().iter().map(|rank| rank.store).collect();
    if ranks.is_empty() { vec![run.store()] } else { ranks }
}

fn of_resource(resource: Attributes, metrics: Metrics) -> Value {
    json!({
        "resource": { "attributes": attributes(&resource) },
        "scopeMetrics": [{
            "scope": { "name": "gnntop", "version": env!("CARGO_PKG_VERSION") },
            "metrics": metrics.into_json(),
        }],
    })
}

impl OtlpResource {
    /// `service.instance.id` is what tells series apart where nothing else of the resource is kept, as in Prometheus.
    fn attributes_of_rank(&self, info: &SessionInfo) -> Attributes {
        let place = info.place.as_deref();
        let instance = place
            .map_or_else(|| format!("{}/{}", info.host, info.pid), |place| format!("{}/{}", place.run, place.rank));
        let mut all = self.common(info, instance);
        all.push(("process.pid".to_owned(), info.pid.into()));
        all.extend(place.map(|place| ("gnntop.rank".to_owned(), place.rank.into())));
        self.with_own(all)
    }

    fn attributes_of_machine(&self, info: &SessionInfo) -> Attributes {
        let run = info.place.as_ref().map_or_else(|| info.pid.to_string(), |place| place.run.clone());
        self.with_own(self.common(info, format!("{run}/{}/machine", info.host)))
    }

    fn common(&self, info: &SessionInfo, instance: String) -> Attributes {
        let service = self.service_name.clone().unwrap_or_else(|| info.name.clone());
        let run = info.place.as_ref().map_or_else(|| info.name.clone(), |place| place.run.clone());
        let all = [("service.name", service), ("service.instance.id", instance), ("host.name", info.host.clone())];
        let all = all.into_iter().chain([("gnntop.run", run)]);
        all.map(|(name, value)| (name.to_owned(), value.into())).collect()
    }

    fn with_own(&self, mut all: Attributes) -> Attributes {
        let own = |name: &String| self.attributes.iter().any(|(own, _)| own == name);
        // Their `service.name` counts less than the one that has an option of its own.
        let has_name = self.service_name.is_some();
        all.retain(|(name, _)| !own(name) || has_name && name == "service.name");
        let more = self.attributes.iter().filter(|(name, _)| !(has_name && name == "service.name"));
        all.extend(more.map(|(name, value)| (name.clone(), value.as_str().into())));
        all
    }
}

#[cfg(test)]
mod tests;
