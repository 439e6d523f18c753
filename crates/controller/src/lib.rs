//! Watch handlers, queue, claiming, sync and workers: StatefulSetController.
