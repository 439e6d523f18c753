//! Create.

use std::sync::Arc;

use kube_test_control_plane_api::kinds::{Target, Trait, Verb, stored};
use kube_test_control_plane_api::object::{Draft, Key, Object};
use kube_test_control_plane_api::options::WriteOptions;
use kube_test_control_plane_api::status::{ApiError, ApiResult};
use kube_test_control_plane_api::validation::{Findings, Subject};
use kube_test_control_plane_api::{defaults, events};
use kube_test_control_plane_store::store::Expect;
use serde_json::json;

use super::findings::findings;
use crate::route::ResourceRequest;
use crate::server::ApiServer;
use crate::write::{
    Written, check_namespace, check_stored_size, keep_reset, remove_empty, served_draft,
    served_text, stored_form,
};

/// Number of generated names tried before a collision is reported.
const GENERATE_NAME_TRIES: usize = 8;

impl ApiServer {
    /// Creates an object.
    pub(crate) fn create(
        &self,
        request: &ResourceRequest,
        draft: Draft,
        options: &WriteOptions,
    ) -> ApiResult<Written> {
        let prefix = draft.metadata().text("generateName").to_owned();
        if !draft.metadata().name().is_empty() || prefix.is_empty() {
            return self.create_named(request, draft, options);
        }
        let mut result = Err(ApiError::internal("no name was tried"));
        for _ in 0..GENERATE_NAME_TRIES {
            let mut draft = draft.clone();
            let name = self.generate_name(&prefix);
            draft.metadata_mut().insert("name".to_owned(), json!(name));
            result = self.create_named(request, draft, options);
            if !matches!(&result, Err(err) if err.reason == "AlreadyExists") {
                break;
            }
        }
        result
    }

    fn create_named(
        &self,
        request: &ResourceRequest,
        mut draft: Draft,
        options: &WriteOptions,
    ) -> ApiResult<Written> {
        let served = &request.kind;
        let kind = stored(served);
        if kind
            .custom
            .as_ref()
            .is_some_and(|custom| custom.terminating)
        {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(ApiError::forbidden(kind, draft.metadata().name(), why));
        }
        let in_namespace = check_namespace(request, &draft);
        let version = draft.metadata().resource_version();
        let has_version = version.parse::<u64>().is_ok_and(|version| version != 0);
        events::to_stored(served, &mut draft.value);
        kube_test_control_plane_api::normalize::check_overwritten(
            kind,
            &draft,
            self.emulated_version(),
        )?;
        keep_reset(&mut draft);
        self.prepare_create(kind, &request.namespace, &mut draft);
        Self::note_requester(request, &mut draft);
        self.normalize(kind, &mut draft)?;
        self.track(request, options, None, &mut draft)?;
        defaults::admit_create(kind, &mut draft, &|name| self.priority_class(name))?;
        self.check_default_class(kind, &draft)?;
        self.admit_storage_class(kind, &mut draft);
        self.check_namespace_is_open(request, &draft)?;
        in_namespace?;
        if self.review_write(request, None, &mut draft, options.dry_run)? {
            defaults::set_defaults(kind, self.feature_gates(), &mut draft);
            self.normalize(kind, &mut draft)?;
        }
        remove_empty(draft.metadata_mut());
        let subject = Subject {
            kind,
            served,
            new: &draft,
            old: None,
            target: Target::Object,
            gates: self.feature_gates(),
        };
        self.check_escalation(request, &draft, None)?;
        let Findings { errors, warnings } = findings(self.config(), subject);
        let name = draft.metadata().name().to_owned();
        if !errors.is_empty() {
            return Err(ApiError::invalid_object(kind, &draft.value, &name, &errors));
        }
        if request.verb != Verb::Create {
            self.authorize_create_on_update(request)?;
        }
        let key = Key::new(kind, &request.namespace, &name);
        let allocated = self.allocate(kind, &key, &mut draft)?;
        let is_generated = !draft.metadata().text("generateName").is_empty();
        let written = |text| Written {
            text,
            created: true,
            warnings,
        };
        let exists = |object: Option<Arc<Object>>| {
            let error = if is_generated {
                ApiError::no_unique_name(kind, &name)
            } else {
                ApiError::already_exists(kind, &name)
            };
            if object.is_some_and(|object| object.deleting) {
                error.of_object_in_deletion()
            } else {
                error
            }
        };
        if options.dry_run {
            if let Some(object) = self.store().get(&key) {
                return Err(exists(Some(object)));
            }
            stored_form(kind, &mut draft.clone())?;
            return served_draft(served, draft).map(written);
        }
        if has_version {
            return Err(ApiError::internal(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        check_stored_size(kind, &key, &draft)?;
        stored_form(kind, &mut draft)?;
        let stored = self.store().put(kind, key.clone(), Expect::Absent, draft);
        drop(allocated);
        match stored {
            Ok(object) => served_text(served, &object).map(written),
            Err(_) => Err(exists(self.store().get(&key))),
        }
    }

    /// Rejects creates in missing or terminating namespaces.
    fn check_namespace_is_open(&self, request: &ResourceRequest, draft: &Draft) -> ApiResult<()> {
        if !request.kind.namespaced {
            return Ok(());
        }
        let name = &request.namespace;
        let Some(namespaces) =
            kube_test_control_plane_api::kinds::by_resource("", "v1", "namespaces")
        else {
            return Ok(());
        };
        let key = Key::new(namespaces, "", name);
        let Some(namespace) = self.store().get(&key) else {
            return Err(ApiError::not_found(namespaces, name));
        };
        if !namespace.deleting {
            return Ok(());
        }
        let why = format!(
            "unable to create new content in namespace {name} because it is being terminated"
        );
        let mut error = ApiError::forbidden(&request.kind, draft.metadata().name(), &why);
        if let Some(details) = &mut error.details {
            details["causes"] = json!([{
                "reason": "NamespaceTerminating",
                "message": format!("namespace {name} is being terminated"),
                "field": "metadata.namespace",
            }]);
        }
        Err(error)
    }

    /// Reports whether a PUT of a missing object creates it.
    pub(crate) fn creates_on_update(request: &ResourceRequest) -> bool {
        request.kind.has(Trait::CreateOnUpdate) && request.target == Target::Object
    }
}
