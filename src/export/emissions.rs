//! CodeCarbon's `emissions.csv`, one row for a session, and a file beside it with what that has no room for.
//!
//! The columns are those of CodeCarbon 3.3.2, in its order: it moves a file away that has one more or less. Bounds, labels
//! and sources go to `emissions.quality.csv`, a row for each component and scope. What is not known is empty, not 0.
//! As there, energies are kWh and include the PUE, powers are watts, emissions kilograms.

use std::ops::Range;

use gnntop_analysis::energy::{
    Assumptions, ComponentEnergy, ComponentKind, EnergyBook, EnergyFigure, EnergyScope, Intensity, kilowatt_hours,
};
use gnntop_analysis::figures::utc;
use gnntop_analysis::store::Store;
use gnntop_wire::{Metric, Quantity};

/// CodeCarbon 3.3.2's columns (`codecarbon/output_methods/emissions_data.py`).
pub const COLUMNS: &str = "timestamp,project_name,run_id,experiment_id,duration,emissions,emissions_rate,cpu_power,gpu_power,\
ram_power,cpu_energy,gpu_energy,ram_energy,energy_consumed,water_consumed,country_name,country_iso_code,region,cloud_provider,\
cloud_region,os,python_version,codecarbon_version,cpu_count,cpu_model,gpu_count,gpu_model,longitude,latitude,ram_total_size,\
tracking_mode,cpu_utilization_percent,gpu_utilization_percent,ram_utilization_percent,ram_used_gb,on_cloud,pue,wue";
const QUALITY_COLUMNS: &str =
    "run_id,component,scope,joules,lo_joules,hi_joules,pm95_joules,label,coverage,source,reason,period_ms,gaps";
const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

/// Both files as texts: `emissions.csv` and `emissions.quality.csv`.
pub fn write(store: &Store, assumptions: &Assumptions, scope: EnergyScope) -> (String, String) {
    let book = store.energy(assumptions);
    let session = store.first_ns().unwrap_or(0)..store.now_ns();
    let row = EmissionsRow { store, book: &book, assumptions, scope, session };
    (format!("{COLUMNS}\n{}\n", join_cells(&row.cells())), row.quality())
}

/// A session as a row.
struct EmissionsRow<'a> {
    store: &'a Store,
    book: &'a EnergyBook,
    assumptions: &'a Assumptions,
    scope: EnergyScope,
    session: Range<u64>,
}

/// Energy of a kind of component, as CodeCarbon has it.
#[derive(Clone, Copy, Default)]
struct ComponentPart {
    kilowatt_hours: Option<f64>,
    watts: Option<f64>,
}

impl EmissionsRow<'_> {
    fn cells(&self) -> Vec<String> {
        let seconds = (self.session.end - self.session.start) as f64 / 1e9;
        let parts =
            [ComponentKind::Cpu, ComponentKind::Gpu, ComponentKind::Memory].map(|kind| self.part(kind, seconds));
        let all = parts.iter().filter_map(|part| part.kilowatt_hours).reduce(|a, b| a + b);
        let intensity = self.store.carbon_intensity(self.book, self.assumptions, self.scope, self.session.clone()).ok();
        let kilograms = all.zip(intensity.as_ref()).map(|(kwh, intensity)| kwh * intensity.g_per_kwh / 1000.0);
        let info = self.store.session().info();
        let wall_ns = self.store.session().wall_ns(self.session.end);
        let timestamp = wall_ns.map(|ns| utc(ns).trim_end_matches(" UTC").replace(' ', "T")).unwrap_or_default();
        let name = info.map(|info| info.name.clone()).unwrap_or_default();
        let mut cells = vec![timestamp, name, self.run_id(), String::new(), number(Some(seconds))];
        cells.extend([number(kilograms), number(kilograms.map(|kg| kg / seconds.max(1e-9)))]);
        cells.extend(parts.iter().map(|part| number(part.watts)));
        cells.extend(parts.iter().map(|part| number(part.kilowatt_hours)));
        cells.extend([number(all), String::new()]);
        cells.extend(place(intensity.as_ref()));
        cells.extend([String::new(), String::new(), format!("gnntop {}", env!("CARGO_PKG_VERSION"))]);
        cells.extend(self.machine());
        cells.extend(self.use_of_machine());
        cells.extend([String::new(), number(Some(self.assumptions.pue_or_one())), String::new()]);
        cells
    }

    /// The session's id as a UUID.
    fn run_id(&self) -> String {
        let id = self.store.session().info().map_or(0, |info| info.session_id);
        let hex = format!("{id:032x}");
        [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
    }

    fn part(&self, kind: ComponentKind, seconds: f64) -> ComponentPart {
        let of_kind = self.book.components.iter().filter(|component| component.kind == kind);
        let figures = of_kind.filter_map(|component| self.figure(component, self.scope));
        let Some(all) = figures.reduce(|a, b| a.plus(&b)) else { return ComponentPart::default() };
        let joules = all.joules * self.assumptions.pue_or_one();
        let watts = (seconds > 0.0).then(|| joules / seconds);
        ComponentPart { kilowatt_hours: Some(kilowatt_hours(joules)), watts }
    }

    fn figure(&self, component: &ComponentEnergy, scope: EnergyScope) -> Option<EnergyFigure> {
        self.book.figure(component, scope, self.session.clone())
    }

    /// From `cpu_count` to `tracking_mode`.
    fn machine(&self) -> Vec<String> {
        let hardware = self.store.hardware();
        let device = |metric: Metric| self.store.signals().find(metric).map(|signal| signal.device.clone());
        let gpus = hardware.gpus();
        let gpu_model = gpus.first().and_then(|gpu| device(Quantity::GpuPower.with_instance(*gpu))).unwrap_or_default();
        let gpu_count = if gpus.is_empty() { String::new() } else { gpus.len().to_string() };
        let mode = if self.scope == EnergyScope::Job { "process" } else { "machine" };
        let bytes = hardware.machine_memory_total_bytes().ok();
        let model = device(Quantity::MachineCpuThreads.into()).unwrap_or_default();
        let threads = number(hardware.reading(Quantity::MachineCpuThreads).ok());
        let nowhere = String::new();
        let total = number(bytes.map(|bytes| bytes / GIB));
        vec![threads, model, gpu_count, gpu_model, nowhere.clone(), nowhere, total, mode.to_owned()]
    }

    /// From `cpu_utilization_percent` to `ram_used_gb`: means over the session.
    fn use_of_machine(&self) -> Vec<String> {
        let summary = |metric: Metric| self.store.signals().find(metric).map(|signal| *signal.series.summary());
        let threads = self.store.hardware().reading(Quantity::MachineCpuThreads).ok();
        let busy = summary(Quantity::MachineCpuBusy.into()).and_then(|summary| summary.rate_per_s());
        let cpu = busy.zip(threads).map(|(ns_per_s, threads)| 100.0 * ns_per_s / 1e9 / threads);
        let gpu = summary(Quantity::GpuUtil.with_instance(0))
            .and_then(|summary| summary.mean())
            .map(|millipercent| millipercent / 1e3);
        let used = summary(Quantity::MachineMemoryUsed.into()).and_then(|summary| summary.mean());
        let all = self.store.hardware().machine_memory_total_bytes().ok();
        let ram = used.zip(all).map(|(used, all)| 100.0 * used / all);
        [cpu, gpu, ram, used.map(|bytes| bytes / GIB)].map(number).to_vec()
    }

    fn quality(&self) -> String {
        let mut out = format!("{QUALITY_COLUMNS}\n");
        for component in &self.book.components {
            for scope in [EnergyScope::Device, EnergyScope::Job] {
                out.push_str(&join_cells(&self.quality_cells(component, scope)));
                out.push('\n');
            }
        }
        out
    }

    fn quality_cells(&self, component: &ComponentEnergy, scope: EnergyScope) -> Vec<String> {
        let figure = self.figure(component, scope);
        let of = |of: fn(&EnergyFigure) -> f64| number(figure.as_ref().map(of));
        let line = component.device.as_ref().ok().map(|account| account.line());
        let period = line.and_then(|line| line.period_ns()).map(|ns| ns as f64 / 1e6);
        let gaps: u64 = line.map_or(0, |line| line.gaps().iter().map(|(_, count)| count).sum());
        let label = figure.map_or("unavailable", |figure| figure.label.as_str());
        let reason = if scope == EnergyScope::Job { self.book.job_absence(component) } else { None };
        let reason = reason.or(component.reason.as_deref()).unwrap_or_default();
        let mut cells = vec![self.run_id(), component.name.clone(), scope.as_str().to_owned()];
        cells.extend([of(|f| f.joules), of(|f| f.lo), of(|f| f.hi), of(|f| f.pm95), label.to_owned()]);
        cells.extend([
            of(EnergyFigure::coverage),
            component.source.clone().unwrap_or_else(|| "none".to_owned()),
            reason.to_owned(),
            number(period),
            gaps.to_string(),
        ]);
        cells
    }
}

/// From `country_name` to `cloud_region`.
fn place(intensity: Option<&Intensity>) -> [String; 5] {
    let (name, region) = intensity.map_or(("", ""), |intensity| (&intensity.name, &intensity.region));
    let is_country = region.len() == 3 && region.bytes().all(|byte| byte.is_ascii_uppercase());
    let of = |is_so: bool, text: &str| if is_so { text.to_owned() } else { String::new() };
    [of(is_country, name), of(is_country, region), of(!is_country, region), String::new(), String::new()]
}

/// A number, or nothing.
fn number(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map(|value| value.to_string()).unwrap_or_default()
}

/// Cells with commas between them, in quotes where they need some (RFC 4180). A cell that a sheet would take for a formula
/// gets an apostrophe before it.
fn join_cells(cells: &[String]) -> String {
    let cell = |text: &String| {
        let is_formula = text.starts_with(['=', '+', '@']) || (text.starts_with('-') && text.parse::<f64>().is_err());
        let text = if is_formula { format!("'{text}") } else { text.clone() };
        let is_plain = !text.contains([',', '"', '\n', '\r']);
        if is_plain { text } else { format!("\"{}\"", text.replace('"', "\"\"")) }
    };
    cells.iter().map(cell).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use gnntop_fixtures::{MS, START_NS, StreamBuilder, each_item};

    /// Ten seconds of two threads at half load, and no counter.
    fn store() -> Store {
        let mut stream = StreamBuilder::new("a \"name\", quoted");
        let sensors = stream.track(gnntop_wire::TrackRole::Sensors, "sensors");
        let (ns, counter) = (gnntop_wire::Unit::Nanoseconds, gnntop_wire::SignalKind::Counter);
        for name in ["machine.cpu.busy", "process.cpu_time", "machine.cpu.0.busy", "machine.cpu.1.busy"] {
            let signal = stream.signal(name, ns, counter);
            (0..=100).for_each(|n| stream.sample(sensors, signal, START_NS + n * 100 * MS, n as i64 * 100_000_000));
        }
        let mut store = Store::new();
        each_item(&stream.bytes(), |item| store.apply(item));
        store
    }

    fn cell<'a>(cells: &'a [String], column: &str) -> &'a str {
        let at = COLUMNS.split(',').position(|name| name == column).unwrap();
        &cells[at]
    }

    #[test]
    fn the_row_has_codecarbon_s_columns_and_units() {
        let store = store();
        let region = Some("CA-QC".to_owned());
        let assumptions = Assumptions { region, pue: Some(1.5), cpu_watts: Some(100.0), ..Assumptions::default() };
        let book = store.energy(&assumptions);
        let session = store.first_ns().unwrap()..store.now_ns();
        let row =
            EmissionsRow { store: &store, book: &book, assumptions: &assumptions, scope: EnergyScope::Job, session };
        let cells = row.cells();
        assert_eq!((COLUMNS.split(',').count(), cells.len()), (38, 38));
        let value = |column: &str| cell(&cells, column).parse::<f64>().unwrap();
        assert_eq!(value("duration"), 10.0);
        assert!((value("cpu_power") - 150.0).abs() < 1e-6, "with the PUE");
        assert!((value("cpu_energy") - 1500.0 / 3.6e6).abs() < 1e-12);
        assert!((value("emissions") - 1500.0 / 3.6e6 * 0.03123).abs() < 1e-12);
        assert!((value("emissions_rate") - value("emissions") / 10.0).abs() < 1e-15);
        for unknown in ["gpu_energy", "gpu_power", "water_consumed", "longitude", "python_version", "country_name"] {
            assert_eq!(cell(&cells, unknown), "", "{unknown} is not known, and not 0");
        }
        assert_eq!((cell(&cells, "region"), cell(&cells, "tracking_mode")), ("CA-QC", "process"));
        assert_eq!(cell(&cells, "run_id").len(), 36);
    }

    #[test]
    fn the_quality_file_has_every_component_in_both_scopes() {
        let (emissions, quality) = write(&store(), &Assumptions::default(), EnergyScope::Device);
        assert!(emissions.starts_with(COLUMNS) && emissions.contains("\"a \"\"name\"\", quoted\""), "{emissions}");
        assert_eq!(emissions.lines().count(), 2);
        let rows: Vec<&str> = quality.lines().collect();
        assert_eq!(rows.len(), 1 + 3 * 2, "{quality}");
        assert!(rows[1].contains(",gpu,device,,,,,unavailable,"), "{quality}");
        assert!(rows[3].contains(",cpu,device,") && rows[3].contains(",modelled,0,"), "{quality}");
    }

    #[test]
    fn no_cell_is_a_formula() {
        assert_eq!(join_cells(&["=1+1".into(), "-x".into(), "-1.5".into()]), "'=1+1,'-x,-1.5");
    }
}
