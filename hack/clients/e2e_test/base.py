"""The configuration of the Python clients' tests, which their packages leave out."""

import asyncio
import importlib
import inspect

CLIENT = __package__.rpartition(".")[0]


def get_e2e_configuration():
    """The configuration of the kubeconfig."""
    configuration = importlib.import_module(f"{CLIENT}.client.configuration").Configuration()
    load = importlib.import_module(f"{CLIENT}.config.kube_config").load_kube_config
    loaded = load(client_configuration=configuration)
    if inspect.isawaitable(loaded):
        asyncio.run(loaded)
    return configuration
