"""End-to-end test of a control plane with the Python client.

Takes the path of a kubeconfig, and the number of changes that the server keeps. Every step checks
the client's results; the first failure ends the program with its traceback.
"""

import sys
import threading

from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError, UnprocessibleEntityError

NAMESPACE = "default"

# Time limit of a watch, in seconds.
PATIENCE = 20


def config_map(name, **data):
    """A config map for the typed client."""
    metadata = client.V1ObjectMeta(name=name, labels={"app": "python"})
    return client.V1ConfigMap(metadata=metadata, data=data)


def refused(code, call, *args, **kwargs):
    """Checks that the call fails with the code; returns the error."""
    try:
        call(*args, **kwargs)
    except ApiException as error:
        assert error.status == code, (error.status, error.body)
        return error
    raise AssertionError(f"{call} was not refused")


def crud(core):
    """Creates, reads, replaces, patches in each form, and deletes."""
    created = core.create_namespaced_config_map(NAMESPACE, config_map("crud", a="1"))
    assert created.metadata.uid and created.metadata.resource_version
    refused(409, core.create_namespaced_config_map, NAMESPACE, config_map("crud"))
    created.data["b"] = "2"
    replaced = core.replace_namespaced_config_map("crud", NAMESPACE, created)
    assert replaced.data == {"a": "1", "b": "2"}
    refused(409, core.replace_namespaced_config_map, "crud", NAMESPACE, created)
    merged = core.patch_namespaced_config_map("crud", NAMESPACE, {"data": {"a": None}})
    assert merged.data == {"b": "2"}
    operations = [{"op": "add", "path": "/data/c", "value": "3"}]
    patched = core.patch_namespaced_config_map("crud", NAMESPACE, operations)
    assert patched.data == {"b": "2", "c": "3"}
    listed = core.list_namespaced_config_map(NAMESPACE, label_selector="app=python")
    assert [item.metadata.name for item in listed.items] == ["crud"]
    core.delete_namespaced_config_map("crud", NAMESPACE)
    refused(404, core.read_namespaced_config_map, "crud", NAMESPACE)


def pages(core):
    """Lists in consistent pages."""
    for number in range(5):
        core.create_namespaced_config_map(NAMESPACE, config_map(f"page-{number}"))
    names, token = [], None
    while True:
        page = core.list_namespaced_config_map(
            NAMESPACE, label_selector="app=python", limit=2, _continue=token
        )
        names += [item.metadata.name for item in page.items]
        token = page.metadata._continue
        if not token:
            break
    assert names == [f"page-{number}" for number in range(5)], names
    core.delete_collection_namespaced_config_map(NAMESPACE, label_selector="app=python")


def watches(core, window):
    """Watches a collection from a list on, and starts over after the history has expired."""
    listed = core.list_namespaced_config_map(NAMESPACE)
    version = listed.metadata.resource_version

    def write():
        core.create_namespaced_config_map(NAMESPACE, config_map("seen", a="1"))
        core.patch_namespaced_config_map("seen", NAMESPACE, {"data": {"a": "2"}})
        core.delete_namespaced_config_map("seen", NAMESPACE)

    writer = threading.Thread(target=write)
    writer.start()
    events = []
    stream = watch.Watch()
    for event in stream.stream(
        core.list_namespaced_config_map,
        NAMESPACE,
        resource_version=version,
        timeout_seconds=PATIENCE,
    ):
        events.append((event["type"], event["object"].metadata.name))
        if event["type"] == "DELETED":
            stream.stop()
    writer.join()
    assert events == [("ADDED", "seen"), ("MODIFIED", "seen"), ("DELETED", "seen")], events
    core.create_namespaced_config_map(NAMESPACE, config_map("busy"))
    for number in range(window):
        core.patch_namespaced_config_map("busy", NAMESPACE, {"data": {"n": str(number)}})
    try:
        for event in watch.Watch().stream(
            core.list_namespaced_config_map,
            NAMESPACE,
            resource_version=version,
            timeout_seconds=PATIENCE,
        ):
            raise AssertionError(f"an event that was forgotten: {event}")
    except ApiException as error:
        assert error.status == 410, error
    # Without a version, a watch starts with the existing objects.
    core.create_namespaced_config_map(NAMESPACE, config_map("there"))
    stream = watch.Watch()
    for event in stream.stream(
        core.list_namespaced_config_map,
        NAMESPACE,
        field_selector="metadata.name=there",
        timeout_seconds=PATIENCE,
    ):
        assert (event["type"], event["object"].metadata.name) == ("ADDED", "there")
        stream.stop()
    core.delete_namespaced_config_map("there", NAMESPACE)


def stateful_sets(apps, core):
    """Runs a set: scale, status, rollout and deletion through the typed client."""
    labels = {"app": "web"}
    container = client.V1Container(name="c", image="img:1")
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels=labels),
        spec=client.V1PodSpec(containers=[container]),
    )
    spec = client.V1StatefulSetSpec(
        replicas=2,
        service_name="web",
        selector=client.V1LabelSelector(match_labels=labels),
        template=template,
    )
    body = client.V1StatefulSet(metadata=client.V1ObjectMeta(name="web"), spec=spec)
    created = apps.create_namespaced_stateful_set(NAMESPACE, body)
    assert created.spec.pod_management_policy == "OrderedReady"
    scale = apps.read_namespaced_stateful_set_scale("web", NAMESPACE)
    scale.spec.replicas = 3
    assert apps.replace_namespaced_stateful_set_scale("web", NAMESPACE, scale).spec.replicas == 3
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "img:2"}]}}}}
    patched = apps.patch_namespaced_stateful_set("web", NAMESPACE, patch)
    assert patched.spec.template.spec.containers[0].image == "img:2"
    assert patched.metadata.generation == 3, patched.metadata.generation
    status = {"status": {"replicas": 3, "readyReplicas": 1}}
    patched = apps.patch_namespaced_stateful_set_status("web", NAMESPACE, status)
    assert patched.status.ready_replicas == 1
    error = refused(
        422,
        apps.patch_namespaced_stateful_set,
        "web",
        NAMESPACE,
        {"spec": {"serviceName": "other"}},
    )
    assert "updates to statefulset spec" in error.body
    apps.delete_namespaced_stateful_set("web", NAMESPACE, propagation_policy="Background")
    refused(404, apps.read_namespaced_stateful_set, "web", NAMESPACE)
    assert core.list_namespaced_pod(NAMESPACE).metadata.resource_version


def dynamic_client(api):
    """Finds resources by discovery, applies on the server, watches."""
    resources = dynamic.DynamicClient(api)
    maps = resources.resources.get(api_version="v1", kind="ConfigMap")
    sets = resources.resources.get(api_version="apps/v1", kind="StatefulSet")
    assert sets.namespaced and "sts" in sets.short_names
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "applied"},
        "data": {"a": "1"},
    }
    applied = maps.server_side_apply(
        body=body, name="applied", namespace=NAMESPACE, field_manager="one"
    )
    assert applied.data.a == "1"
    body["data"]["a"] = "2"
    try:
        maps.server_side_apply(
            body=body, name="applied", namespace=NAMESPACE, field_manager="two"
        )
        raise AssertionError("a conflict was expected")
    except ConflictError as error:
        assert "one" in str(error.body), error.body
    forced = maps.server_side_apply(
        body=body,
        name="applied",
        namespace=NAMESPACE,
        field_manager="two",
        force_conflicts=True,
    )
    assert forced.data.a == "2"
    listed = maps.get(namespace=NAMESPACE, field_selector="metadata.name=applied")
    for event in maps.watch(
        namespace=NAMESPACE,
        name="applied",
        resource_version=listed.metadata.resourceVersion,
        timeout=1,
    ):
        raise AssertionError(f"nothing has changed since: {event}")
    maps.delete(name="applied", namespace=NAMESPACE)
    try:
        maps.get(name="applied", namespace=NAMESPACE)
        raise AssertionError("it was deleted")
    except NotFoundError:
        pass


def custom_resources(api):
    """Defines a resource, and uses it with the dynamic client."""
    definitions = client.ApiextensionsV1Api(api)
    counts = {"type": "object", "properties": {"crew": {"type": "integer", "minimum": 0}}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.harbour.example"},
        "spec": {
            "group": "harbour.example",
            "scope": "Namespaced",
            "names": {"plural": "boats", "singular": "boat", "kind": "Boat"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {"spec": counts, "status": counts},
                        }
                    },
                }
            ],
        },
    }
    definitions.create_custom_resource_definition(definition)
    resources = dynamic.DynamicClient(api)
    boats = resources.resources.get(api_version="harbour.example/v1", kind="Boat")
    boat = {
        "apiVersion": "harbour.example/v1",
        "kind": "Boat",
        "metadata": {"name": "argo"},
        "spec": {"crew": 2},
        "status": {"crew": 1},
    }
    created = boats.create(body=boat, namespace=NAMESPACE)
    assert created.spec.crew == 2 and created.status is None
    try:
        boats.patch(
            body={"spec": {"crew": -1}},
            name="argo",
            namespace=NAMESPACE,
            content_type="application/merge-patch+json",
        )
        raise AssertionError("the schema allows no negative numbers")
    except UnprocessibleEntityError as error:
        assert "greater than or equal to 0" in str(error.body), error.body
    patched = boats.status.patch(
        body={"status": {"crew": 1}},
        name="argo",
        namespace=NAMESPACE,
        content_type="application/merge-patch+json",
    )
    assert patched.status.crew == 1
    boat["spec"]["crew"] = 3
    del boat["status"]
    applied = boats.server_side_apply(
        body=boat,
        name="argo",
        namespace=NAMESPACE,
        field_manager="python",
        force_conflicts=True,
    )
    assert applied.spec.crew == 3
    for event in boats.watch(namespace=NAMESPACE, timeout=PATIENCE):
        assert (event["type"], event["object"].spec.crew) == ("ADDED", 3)
        break
    definitions.delete_custom_resource_definition("boats.harbour.example")
    try:
        boats.get(namespace=NAMESPACE)
        raise AssertionError("the definition was deleted")
    except NotFoundError:
        pass


def main():
    """Runs every step."""
    config.load_kube_config(config_file=sys.argv[1])
    api = client.ApiClient()
    core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
    assert client.VersionApi(api).get_code().git_version.startswith("v1.36")
    crud(core)
    pages(core)
    watches(core, int(sys.argv[2]))
    stateful_sets(apps, core)
    dynamic_client(api)
    custom_resources(api)
    print("every step passed")


if __name__ == "__main__":
    main()
