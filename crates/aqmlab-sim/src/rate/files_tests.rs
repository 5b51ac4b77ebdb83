use super::*;
use proptest::prelude::*;
