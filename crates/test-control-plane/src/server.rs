//! The API server: one pipeline for every request, as a tower service.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Collected};
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::admission::AdmissionHooks;
use crate::allocate::Allocations;
use crate::audit::{AuditLog, Recording};
use crate::auth::{
    Admission, Identity, IssuedTokens, KeyError, Rbac, RbacIndex, Sender, SigningKey, TokenKey,
};
use crate::clock::{Clock, SkewedClock};
use crate::config::ServerConfig;
use crate::decode::{self, BodyFormat};
use crate::faults::{Eyes, Faults, Interrupted, RequestFacts};
use crate::handlers::{ScaleSource, Source};
use crate::incoming::Incoming;
use crate::kinds::Subresource;
use crate::kinds::Trait;
use crate::list_options::ListOptions;
use crate::negotiate;
use crate::object::Draft;
use crate::options::{Write, WriteOptions};
use crate::patch::{Patch, is_apply};
use crate::query::{self, Query};
use crate::reply::{self, BoxError, Reply};
use crate::represent::Representation;
use crate::route::{ResourceRequest, Route, Target, Verb, route};
use crate::selectors::Selection;
use crate::status::{ApiError, ApiResult};
use crate::store::Store;
use crate::transport::{self, Finish, Stamps};
use crate::validation;
use crate::warnings;

/// The API server. Cloning gives another handle to the same one.
#[derive(Clone, Debug)]
pub struct ApiServer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    clock: Arc<dyn Clock>,
    skew: Arc<SkewedClock>,
    /// Watches from before this revision are answered with 410.
    watch_floor: AtomicU64,
    random: Mutex<StdRng>,
    allocations: Mutex<Allocations>,
    config: ServerConfig,
    audit: AuditLog,
    faults: Faults,
    admission: AdmissionHooks,
    stamps: Stamps,
    policy: Rbac,
    token_key: TokenKey,
    issued_tokens: IssuedTokens,
    /// Whoever sends requests from this process and doesn't say who it is.
    admin: Arc<Identity>,
    stopping: CancellationToken,
}

/// The connection broke, because a fault wanted it so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection was dropped")]
pub struct ConnectionDropped;

impl ApiServer {
    /// A server with an empty store.
    pub fn new(config: ServerConfig, clock: Arc<dyn Clock>) -> Self {
        let skew = Arc::new(SkewedClock::new(clock));
        Self(Arc::new(Inner {
            store: Store::new(config.log_window),
            clock: Arc::<SkewedClock>::clone(&skew),
            skew,
            watch_floor: AtomicU64::new(0),
            random: Mutex::new(StdRng::seed_from_u64(config.seed)),
            allocations: Mutex::new(Allocations::default()),
            audit: AuditLog::new(config.audit_limit),
            faults: Faults::new(config.seed),
            admission: AdmissionHooks::default(),
            stamps: Stamps::new(config.seed),
            policy: Rbac::default(),
            token_key: TokenKey::default(),
            issued_tokens: IssuedTokens::default(),
            admin: Arc::new(Identity::admin()),
            stopping: CancellationToken::new(),
            config,
        }))
    }

    /// The store, to look into and to compact.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// The clock that timestamps come from.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.0.clock
    }

    /// How the server behaves.
    pub fn config(&self) -> &ServerConfig {
        &self.0.config
    }

    /// The requests so far.
    pub fn audit(&self) -> &AuditLog {
        &self.0.audit
    }

    /// The fault rules.
    pub fn faults(&self) -> &Faults {
        &self.0.faults
    }

    /// The roles and bindings, arranged to be asked.
    pub(crate) fn policy_index(&self) -> Arc<RbacIndex> {
        self.0.policy.index(&self.0.store)
    }

    pub(crate) fn issued_tokens(&self) -> &IssuedTokens {
        &self.0.issued_tokens
    }

    /// The key that the tokens of service accounts are signed with.
    pub(crate) fn token_key(&self) -> Result<&SigningKey, KeyError> {
        self.0.token_key.get()
    }

    /// The code of the test that looks at writes.
    pub fn admission(&self) -> &AdmissionHooks {
        &self.0.admission
    }

    /// Ends every watch; requests are still answered.
    pub fn stop(&self) {
        self.0.stopping.cancel();
    }

    pub(crate) fn watch_floor(&self) -> &AtomicU64 {
        &self.0.watch_floor
    }

    pub(crate) fn skew(&self) -> &SkewedClock {
        &self.0.skew
    }

    pub(crate) fn stopping(&self) -> CancellationToken {
        self.0.stopping.clone()
    }

    pub(crate) fn with_random<T>(&self, draw: impl FnOnce(&mut StdRng) -> T) -> T {
        draw(&mut self.0.random.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn with_allocations<T>(&self, work: impl FnOnce(&mut Allocations) -> T) -> T {
        let allocations = self.0.allocations.lock();
        work(&mut allocations.unwrap_or_else(PoisonError::into_inner))
    }

    /// Answers a request.
    ///
    /// # Errors
    ///
    /// A fault wants the connection dropped or refused. Every other failure is an answer.
    pub async fn serve<B>(&self, request: Request<B>) -> Result<Reply, ConnectionDropped>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
    {
        let connection = self.faults().outage().connect().ok_or(ConnectionDropped)?;
        tokio::select! {
            biased;
            () = connection.cancelled() => Err(ConnectionDropped),
            answered = self.read_and_answer(request, &connection) => answered,
        }
    }

    async fn read_and_answer<B>(
        &self,
        request: Request<B>,
        connection: &CancellationToken,
    ) -> Result<Reply, ConnectionDropped>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
    {
        let (parts, body) = request.into_parts();
        let sender = Sender::of(&parts.extensions, &self.0.admin);
        let query_text = parts.uri.query().unwrap_or_default().to_owned();
        let query = Query::parse(&query_text);
        let finish = Finish::new(&parts.method, &parts.headers, &query, &self.0.stamps);
        let (body, unreadable) = match transport::read_body(body).await {
            Ok(body) => (body, None),
            Err(err) => (Bytes::new(), Some(err)),
        };
        let incoming = Incoming {
            method: parts.method,
            host: transport::host(&parts.uri, &parts.headers),
            path: query::decode_path(parts.uri.path()).into_owned(),
            query,
            query_text,
            headers: parts.headers,
            body,
            unreadable,
            sender,
        };
        let reply = self.answer(&incoming, &finish, connection).await?;
        Ok(finish.stamp(reply, &self.0.stamps))
    }

    async fn answer(
        &self,
        incoming: &Incoming,
        finish: &Finish,
        connection: &CancellationToken,
    ) -> Result<Reply, ConnectionDropped> {
        let admission = match self.recognize(incoming) {
            Ok(admission) => admission,
            Err(err) => return Ok(finish.encode(reply::error(&err)).await),
        };
        let facts = Arc::new(incoming.facts(&admission.user));
        let strike = self.faults().strike(&facts, &incoming.body);
        let recording = Recording {
            server: self,
            incoming,
            identity: &admission.user,
            facts: &facts,
            audit_id: finish.audit_id(),
            fault: strike.names(),
            received: self.clock().now(),
            begun: Instant::now(),
        };
        if let Some(code) = strike.code_without_handling() {
            recording.finish(self.store().revision(), code, None);
        }
        let handled = async {
            let before = self.store().revision();
            let reply = match self.dispatch(&admission, incoming, &facts).await {
                Ok(reply) => {
                    recording.finish(before, reply.status().as_u16(), None);
                    reply
                }
                Err(err) => {
                    recording.finish(before, err.code, Some(&err));
                    reply::error(&err)
                }
            };
            Ok::<Reply, Infallible>(finish.encode(reply).await)
        };
        let result = strike.carry_out(&facts, handled).await;
        match result {
            Ok(reply) => Ok(self.faults().follow(&facts, connection.clone(), reply)),
            Err(Interrupted::Dropped) => Err(ConnectionDropped),
            Err(Interrupted::Failed(never)) => match never {},
        }
    }

    /// Answers whoever was recognized.
    async fn dispatch(
        &self,
        admission: &Admission,
        incoming: &Incoming,
        facts: &Arc<RequestFacts>,
    ) -> ApiResult<Reply> {
        self.admit(admission, incoming)?;
        match route(&incoming.method, &incoming.path, &incoming.query)? {
            Route::Resource(mut request) => {
                if let Some(error) = &incoming.unreadable {
                    return Err(error.clone());
                }
                request.user = Some(Arc::clone(&admission.user));
                let eyes = self.faults().eyes(Arc::clone(facts));
                let reply = self.handle(&request, incoming, eyes).await;
                let warning = warnings::deprecation(request.kind).map(str::to_owned);
                reply::with_warnings(reply, warning.as_slice())
            }
            other => self.discover(&other, incoming),
        }
    }

    async fn handle(
        &self,
        request: &ResourceRequest,
        incoming: &Incoming,
        eyes: Eyes,
    ) -> ApiResult<Reply> {
        check_name_fits(request)?;
        let query = &incoming.query;
        let wanted = negotiate::objects(incoming.header(ACCEPT), request.verb, query)?;
        let representation = wanted.representation;
        if request.verb != Verb::Watch {
            query.timeout()?;
        }
        let reply = match (request.verb, request.target) {
            (_, Target::Part(Subresource::Log)) => self.pod_log(request, query),
            (
                _,
                Target::Part(
                    Subresource::Attach
                    | Subresource::Exec
                    | Subresource::PortForward
                    | Subresource::Proxy,
                ),
            ) => Err(self.connect(request, query)),
            (Verb::List, _) if request.kind.storage == "componentstatuses" => Ok(
                reply::json_value(StatusCode::OK, &Self::component_statuses()),
            ),
            (Verb::Get, Target::Part(Subresource::Scale)) => {
                Ok(reply::json_text(StatusCode::OK, self.get_scale(request)?))
            }
            (Verb::Get, _) => self.get(request, query, &eyes).await,
            (Verb::List, _) => self.list(request, query, &eyes).await,
            (Verb::Watch, _) => self.watch(request, query, representation, eyes).await,
            (Verb::Create, _) => self.handle_create(request, incoming),
            (Verb::Update | Verb::Patch, _) => self.handle_update(request, incoming),
            (Verb::Delete, _) => self.delete(request, &incoming.delete_options()?),
            (Verb::DeleteCollection, _) => {
                ListOptions::of_list(query)?;
                let selection = Selection::parse(request.kind, query)?;
                self.delete_collection(request, &selection, &incoming.delete_options()?)
            }
        }?;
        let mut reply = reply;
        reply.extensions_mut().insert(wanted);
        let is_whole = representation == Representation::Whole || request.verb == Verb::Watch;
        if is_whole || !reply.status().is_success() {
            return Ok(reply);
        }
        let (parts, body) = reply.into_parts();
        // The body is whole already, so that collecting it can't fail.
        let body = body.collect().await.map(Collected::to_bytes);
        let body = body.unwrap_or_default();
        let body = representation.body(request.kind, body, self.clock().now())?;
        Ok(reply::with_body(parts, body))
    }

    fn handle_create(&self, request: &ResourceRequest, incoming: &Incoming) -> ApiResult<Reply> {
        let options =
            WriteOptions::parse(Write::Create, &incoming.query, incoming.header(USER_AGENT))?;
        let format = incoming.format()?;
        match request.target {
            Target::Part(Subresource::Binding) => {
                let body = decode::value(format, &incoming.body)?;
                self.review_posted(request, &body, options.dry_run)?;
                self.bind(request, &body, options.dry_run)
            }
            Target::Part(Subresource::Eviction) => {
                let body = decode::value(format, &incoming.body)?;
                self.review_posted(request, &body, options.dry_run)?;
                self.evict(request, &incoming.query, &body, &options)
            }
            Target::Part(Subresource::Token) => self.post_virtual(request, incoming, &options),
            Target::Object if request.kind.has(Trait::Virtual) => {
                self.post_virtual(request, incoming, &options)
            }
            _ => {
                let (draft, mut warnings) = self.decode(request, incoming, &options)?;
                let created = self.create(request, &draft, &options);
                if created.is_ok() {
                    warnings.extend(warnings::of_object(request.kind, &draft.value));
                }
                let reply = created.map(|text| reply::json_text(StatusCode::CREATED, text));
                reply::with_warnings(reply, &warnings)
            }
        }
    }

    fn handle_update(&self, request: &ResourceRequest, incoming: &Incoming) -> ApiResult<Reply> {
        let (query, agent) = (&incoming.query, incoming.header(USER_AGENT));
        if request.verb == Verb::Patch && is_apply(incoming.header(CONTENT_TYPE)) {
            let options = WriteOptions::parse(Write::Apply, query, agent)?;
            return self.apply(request, &incoming.body, &options);
        }
        let write = if request.verb == Verb::Patch {
            Write::Patch
        } else {
            Write::Update
        };
        let options = WriteOptions::parse(write, query, agent)?;
        let body = &incoming.body;
        let (source, mut warnings) = if request.verb == Verb::Patch {
            let patch = Patch::parse(incoming.header(CONTENT_TYPE), body)?;
            if request.target == Target::Part(Subresource::Scale) {
                let text = self.update_scale(request, &ScaleSource::Patch(&patch), &options)?;
                return Ok(reply::json_text(StatusCode::OK, text));
            }
            let text = String::from_utf8_lossy(body);
            let found = self.check_patch(request, &patch, &text, options.field_validation)?;
            (Source::Patch(patch), found)
        } else if request.target == Target::Part(Subresource::Scale) {
            let value = decode::value(incoming.format()?, body)?;
            let text = self.update_scale(request, &ScaleSource::Put(&value), &options)?;
            return Ok(reply::json_text(StatusCode::OK, text));
        } else {
            let (draft, found) = self.decode(request, incoming, &options)?;
            (Source::Put(draft), found)
        };
        let updated = self.update(request, &source, &options);
        if let Ok((text, _)) = &updated
            && warnings::has_rules(request.kind)
        {
            let object: Value = serde_json::from_slice(text).unwrap_or_default();
            warnings.extend(warnings::of_object(request.kind, &object));
        }
        let reply = updated.map(|(text, created)| {
            let code = if created {
                StatusCode::CREATED
            } else {
                StatusCode::OK
            };
            reply::json_text(code, text)
        });
        reply::with_warnings(reply, &warnings)
    }

    /// The object in a body, and what the client is to be warned of.
    pub(crate) fn decode(
        &self,
        request: &ResourceRequest,
        incoming: &Incoming,
        options: &WriteOptions,
    ) -> ApiResult<(Draft, Vec<String>)> {
        let kind = request.kind;
        let format = incoming.format()?;
        let draft = decode::object(kind, format, &incoming.body)?;
        let text = match format {
            BodyFormat::Json => String::from_utf8_lossy(&incoming.body),
            BodyFormat::Yaml => draft.to_value().to_string().into(),
            // Numbers that no field has are not unknown members.
            BodyFormat::Protobuf => return Ok((draft, Vec::new())),
        };
        let warnings = self.check_fields(kind, &text, options.field_validation)?;
        Ok((draft, warnings))
    }
}

impl<B> tower::Service<Request<B>> for ApiServer
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Reply;
    type Error = ConnectionDropped;
    type Future = Pin<Box<dyn Future<Output = Result<Reply, ConnectionDropped>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move { server.serve(request).await })
    }
}

/// Refuses names that nothing can have, as they mean something else in paths.
fn check_name_fits(request: &ResourceRequest) -> ApiResult<()> {
    // The name of what is created stands in the body, which has rules of its own.
    if request.verb == Verb::Create && request.target == Target::Object {
        return Ok(());
    }
    let found = validation::path_segment(&request.name);
    if found.is_empty() {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "Name parameter invalid: {:?}: {}",
        request.name,
        found.join(";")
    )))
}
