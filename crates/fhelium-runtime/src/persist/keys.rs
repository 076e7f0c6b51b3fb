//! Keys: one half of each and the seed of the other.

use super::container::{Incoming, Part};
use super::error::Result;
use super::values::{id_text, read_secret_id, same_parameters};
use crate::{Engine, EvaluationKeys, KeySet, RuntimeError};
use fhelium_ckks::{
    CkksError, Context, ContextOptions, KeyGenerator, KeyKind, KeySwitchKey, Parameters, PublicKey,
    Randomness, SecretKey,
};
use safetensors::Dtype;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// What one key of a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Purpose {
    Secret,
    Public,
    Relinearization,
    Rotation,
    Conjugation,
}

/// One key of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct KeyRecord {
    pub key: Purpose,
    /// The step of a rotation.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub step: Option<usize>,
    /// The id of its secret, which is not derived from the secret.
    pub secret: String,
}

impl KeyRecord {
    /// The names of its tensors begin so; a file holds one key of each name.
    fn prefix(&self) -> String {
        match (self.key, self.step) {
            (Purpose::Secret, _) => "secret".to_owned(),
            (Purpose::Public, _) => "public".to_owned(),
            (Purpose::Relinearization, _) => "relinearization".to_owned(),
            (Purpose::Rotation, step) => format!("rotation-{}", step.unwrap_or_default()),
            (Purpose::Conjugation, _) => "conjugation".to_owned(),
        }
    }

    pub fn write_public<'a>(
        key: &'a PublicKey,
        parameters: &Parameters,
        parts: &mut Vec<Part<'a>>,
    ) -> Result<Self> {
        same_parameters(key.parameters_id(), parameters)?;
        let record = KeyRecord {
            key: Purpose::Public,
            step: None,
            secret: id_text(key.secret_id().bytes()),
        };
        let shape = vec![parameters.moduli().len(), parameters.n()];
        push_halves(&record.prefix(), key.seed(), key.residues(), shape, parts);
        Ok(record)
    }

    pub fn write_switch<'a>(
        key: &'a KeySwitchKey,
        parameters: &Parameters,
        prefix: Option<&str>,
        parts: &mut Vec<Part<'a>>,
    ) -> Result<Self> {
        same_parameters(key.parameters_id(), parameters)?;
        let (purpose, step) = match key.key_kind() {
            KeyKind::Relinearization => (Purpose::Relinearization, None),
            KeyKind::Rotation { step } => (Purpose::Rotation, Some(step)),
            KeyKind::Conjugation => (Purpose::Conjugation, None),
        };
        let record = KeyRecord {
            key: purpose,
            step,
            secret: id_text(key.secret_id().bytes()),
        };
        let own = record.prefix();
        let prefix = prefix.unwrap_or(&own);
        push_halves(
            prefix,
            key.seed(),
            key.residues(),
            switch_shape(parameters),
            parts,
        );
        Ok(record)
    }

    pub fn read_public(
        &self,
        parameters: &Parameters,
        incoming: &mut Incoming<'_>,
    ) -> Result<PublicKey> {
        let secret = read_secret_id(incoming.file, &self.secret)?;
        let shape = [parameters.moduli().len(), parameters.n()];
        let (seed, residues) = take_halves(&self.prefix(), &shape, incoming)?;
        PublicKey::from_raw(parameters, secret, seed, residues)
            .map_err(|error| incoming.refuse("public key", error, "a key of the parameters"))
    }

    pub fn read_switch(
        &self,
        parameters: &Parameters,
        prefix: Option<&str>,
        incoming: &mut Incoming<'_>,
    ) -> Result<KeySwitchKey> {
        let kind = match (self.key, self.step) {
            (Purpose::Relinearization, None) => KeyKind::Relinearization,
            (Purpose::Conjugation, None) => KeyKind::Conjugation,
            (Purpose::Rotation, Some(step)) => KeyKind::Rotation { step },
            (key, step) => {
                let found = format!("{key:?} with step {step:?}");
                let expected = "a relinearization, rotation or conjugation key; only and every \
                                rotation has a step";
                return Err(incoming.refuse("key", found, expected));
            }
        };
        let secret = read_secret_id(incoming.file, &self.secret)?;
        let own = self.prefix();
        let prefix = prefix.unwrap_or(&own);
        let (seed, residues) = take_halves(prefix, &switch_shape(parameters), incoming)?;
        KeySwitchKey::from_raw(parameters, secret, kind, seed, residues)
            .map_err(|error| incoming.refuse(prefix, error, "a key of the parameters"))
    }

    pub fn read_secret(
        &self,
        parameters: &Parameters,
        incoming: &mut Incoming<'_>,
    ) -> Result<SecretKey> {
        let secret = read_secret_id(incoming.file, &self.secret)?;
        let name = format!("{}.coefficients", self.prefix());
        let made = incoming.bytes(&name, Dtype::I8, &[parameters.n()], |bytes| {
            with_context(parameters, |context| {
                // The generator only turns coefficients into residues here; nothing is drawn.
                let randomness = Randomness::from_seed_for_tests(0);
                let generator = KeyGenerator::new(context, &randomness);
                generator.secret_from_coefficients(secret, bytemuck::cast_slice(bytes))
            })
        })?;
        made.map_err(|error| incoming.refuse("secret key", error, "a key of the parameters"))
    }
}

fn switch_shape(parameters: &Parameters) -> Vec<usize> {
    let limbs = parameters.moduli().len() + parameters.special_moduli().len();
    vec![parameters.digits(parameters.depth()), limbs, parameters.n()]
}

fn push_halves<'a>(
    prefix: &str,
    seed: &'a [u8; 32],
    residues: &'a [u64],
    shape: Vec<usize>,
    parts: &mut Vec<Part<'a>>,
) {
    let residues = Part::new(format!("{prefix}.residues"), Dtype::U64, shape, residues);
    let seed = Part::new(format!("{prefix}.seed"), Dtype::U8, vec![seed.len()], seed);
    parts.extend([residues, seed]);
}

fn take_halves(
    prefix: &str,
    shape: &[usize],
    incoming: &mut Incoming<'_>,
) -> Result<([u8; 32], Vec<u64>)> {
    let mut seed = [0; 32];
    let name = format!("{prefix}.seed");
    incoming.bytes(&name, Dtype::U8, &[seed.len()], |bytes| {
        seed.copy_from_slice(bytes)
    })?;
    let residues = incoming.words(&format!("{prefix}.residues"), shape)?;
    Ok((seed, residues))
}

/// A secret's coefficients, in memory only as long as they are written.
pub(super) fn coefficients(key: &SecretKey, parameters: &Parameters) -> Result<Zeroizing<Vec<i8>>> {
    same_parameters(key.parameters_id(), parameters)?;
    let coefficients = with_context(parameters, |context| key.coefficients(context));
    Ok(coefficients.map_err(RuntimeError::from)?)
}

/// The tables of a parameter set: those of an engine that is there, else some for this once.
fn with_context<T>(
    parameters: &Parameters,
    with: impl FnOnce(&Context) -> std::result::Result<T, CkksError>,
) -> std::result::Result<T, CkksError> {
    if let Some(engine) = Engine::alive(parameters) {
        return with(engine.context());
    }
    let options = ContextOptions {
        threads: Some(1),
        tier: None,
    };
    with(&Context::new(parameters, options)?)
}

pub(super) fn write_secret<'a>(
    key: &SecretKey,
    coefficients: &'a [i8],
    parts: &mut Vec<Part<'a>>,
) -> KeyRecord {
    let record = KeyRecord {
        key: Purpose::Secret,
        step: None,
        secret: id_text(key.secret_id().bytes()),
    };
    let name = format!("{}.coefficients", record.prefix());
    let shape = vec![coefficients.len()];
    parts.push(Part::new(name, Dtype::I8, shape, coefficients));
    record
}

pub(super) fn write_evaluation<'a>(
    keys: &'a EvaluationKeys,
    parameters: &Parameters,
    parts: &mut Vec<Part<'a>>,
) -> Result<Vec<KeyRecord>> {
    let mut records = Vec::new();
    if let Some(public) = &keys.public {
        records.push(KeyRecord::write_public(public.host()?, parameters, parts)?);
    }
    for key in keys.keys() {
        records.push(KeyRecord::write_switch(
            key.host()?,
            parameters,
            None,
            parts,
        )?);
    }
    Ok(records)
}

/// Keys without a secret.
pub(super) fn read_evaluation(
    records: &[KeyRecord],
    parameters: &Parameters,
    incoming: &mut Incoming<'_>,
) -> Result<EvaluationKeys> {
    let mut keys = EvaluationKeys::default();
    for record in records {
        let twice = match record.key {
            Purpose::Secret => {
                let expected = "no secret among evaluation keys";
                return Err(incoming.refuse("keys", "a secret key", expected));
            }
            Purpose::Public => {
                let key = record.read_public(parameters, incoming)?;
                keys.public.replace(key.into()).is_some()
            }
            Purpose::Relinearization => {
                let key = record.read_switch(parameters, None, incoming)?;
                keys.relinearization.replace(key.into()).is_some()
            }
            Purpose::Conjugation => {
                let key = record.read_switch(parameters, None, incoming)?;
                keys.conjugation.replace(key.into()).is_some()
            }
            Purpose::Rotation => {
                let key = record.read_switch(parameters, None, incoming)?;
                let step = record.step.unwrap_or_default();
                keys.rotations.insert(step, key.into()).is_some()
            }
        };
        if twice {
            return Err(incoming.refuse("keys", format_args!("{record:?} twice"), "each key once"));
        }
    }
    Ok(keys)
}

/// Keys with their secret: all of one secret, with a public and a relinearization key.
pub(super) fn read_key_set(
    records: &[KeyRecord],
    parameters: &Parameters,
    incoming: &mut Incoming<'_>,
) -> Result<KeySet> {
    let [first, rest @ ..] = records else {
        return Err(incoming.refuse("keys", "none", "a secret key and the keys made from it"));
    };
    if first.key != Purpose::Secret {
        return Err(incoming.refuse(
            "keys",
            format_args!("{:?} first", first.key),
            "the secret key",
        ));
    }
    if let Some(other) = rest.iter().find(|record| record.secret != first.secret) {
        let expected = format!("{}, as of the secret key", first.secret);
        return Err(incoming.refuse("secret", &other.secret, expected));
    }
    let secret = first.read_secret(parameters, incoming)?;
    let keys = read_evaluation(rest, parameters, incoming)?;
    let (Some(public), Some(relinearization)) = (keys.public, keys.relinearization) else {
        let expected = "a public and a relinearization key, as every key set has";
        return Err(incoming.refuse("keys", "one of them is missing", expected));
    };
    Ok(KeySet {
        secret: secret.into(),
        public,
        relinearization,
        rotations: keys.rotations,
        conjugation: keys.conjugation,
    })
}
