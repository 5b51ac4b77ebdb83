//! How a scenario names congestion controls.

use aqmlab_core::{Catalogue, Lookup, Nothing, ParamType, Result, Value, catalogue};

use super::{CongestionConfig, CustomControl};

impl CongestionConfig {
    /// Returns the control after `value` is set, which may name one that `more` has: a name, or a
    /// table with `algorithm` and parameters. A table without `algorithm` changes parameters of the
    /// present control, and so does one that names it: `reno` in the profile `ns2-sack1` is ns-2's.
    ///
    /// # Errors
    /// For unknown names and keys, and values that are not allowed.
    pub fn updated_with(
        &self,
        value: &Value,
        more: &dyn Lookup<dyn CustomControl>,
    ) -> Result<CongestionConfig> {
        catalogue::updated(self, value, more)
    }
}

impl Default for CongestionConfig {
    fn default() -> Self {
        CongestionConfig::Cubic(super::cubic::CubicParams::default())
    }
}

impl ParamType for CongestionConfig {
    const KIND: &'static str = "name or table";
    fn allowed() -> String {
        catalogue::allowed::<Self>()
    }
    fn read(value: &Value) -> Option<Self> {
        Self::default().updated(value).ok()
    }
    fn to_text(&self) -> String {
        self.name().to_string()
    }
    fn choices() -> &'static [&'static str] {
        Self::names()
    }
    fn to_value(&self) -> Value {
        Value::Table(self.to_table())
    }
    fn updated(&self, value: &Value) -> Result<Self> {
        self.updated_with(value, &Nothing)
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_core::Params;

    use super::super::entries;
    use super::*;
    use crate::TcpParams;

    fn set(value: Value) -> Result<TcpParams> {
        let mut params = TcpParams::rfc();
        params.set("congestion_control", &value).map(|()| params)
    }

    fn table(pairs: &[(&str, &str)]) -> Value {
        Value::Table(pairs.iter().map(|(key, text)| (key.to_string(), (*text).into())).collect())
    }

    #[test]
    fn every_control_reads_back_and_is_valid() {
        for entry in entries() {
            let config = CongestionConfig::named(entry.name).unwrap();
            config.check().unwrap();
            assert_eq!(set(config.to_value()).unwrap().congestion_control, config);
            assert_eq!(set(entry.name.into()).unwrap().congestion_control, config);
        }
    }

    #[test]
    fn a_table_without_a_name_changes_what_is_there() {
        let mut params = set(table(&[("algorithm", "reno"), ("beta_ecn", "0.8")])).unwrap();
        let with_abe = params.congestion_control.clone();
        assert_ne!(with_abe, TcpParams::rfc().congestion_control);
        params.set("congestion_control", &table(&[])).unwrap();
        assert_eq!(params.congestion_control, with_abe);
        params.set("congestion_control", &table(&[("beta_ecn", "none")])).unwrap();
        assert_eq!(params.congestion_control, TcpParams::rfc().congestion_control);
    }

    #[test]
    fn what_is_wrong_is_said_at_its_key() {
        for (value, expected) in [
            ("rneo".into(), "congestion_control: `rneo`: unknown congestion control"),
            (Value::Integer(3), "congestion_control: `3`: expected the name"),
            (table(&[("algorithm", "x")]), "congestion_control.algorithm: `x`: unknown"),
            (table(&[("beta_enc", "0.8")]), "congestion_control.beta_enc: unknown key"),
            (table(&[("beta_ecn", "2")]), "congestion_control.beta_ecn: `2`: expected"),
        ] {
            let error = set(value).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
