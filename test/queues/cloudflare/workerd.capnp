using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "main", worker = .main),
    (name = "queues", worker = .queues),
    (name = "disk", disk = (path = "storage", writable = true)),
    # What the handlers report to: the test, on this machine.
    (name = "internet", network = (allow = ["local"])),
  ],
  sockets = [ (name = "http", address = "127.0.0.1:0", http = (), service = "main") ],
);

const main :Workerd.Worker = (
  modules = [ (name = "worker.js", esModule = embed "worker.js") ],
  bindings = [
    (name = "EVIDENCE", text = "EVIDENCE_URL"),
    (name = "WEBHOOK_TOKEN", text = "a-secret"),
    (name = "EVENTS", queue = (name = "queues", props = (json = "{\"queue\": \"events\"}"))),
    (name = "MEDIA_KEYS", durableObjectNamespace = "StoreObject"),
  ],
  compatibilityDate = "2026-03-01",
  durableObjectNamespaces = [ (className = "StoreObject", uniqueKey = "keys", enableSql = true) ],
  durableObjectStorage = (localDisk = "disk"),
);

# The Queues Worker that is part of workerd. It speaks the protocol of the queue binding, keeps messages in Durable Objects
# on the disk, and calls the consumer's queue handler.
const queues :Workerd.Worker = (
  modules = [ (name = "queues.js", bundled = "/workerd/queues.js") ],
  bindings = [
    (name = "SHARD", durableObjectNamespace = "QueueShard"),
    (name = "CONSUMER", service = "main"),
    (name = "CONSUMERS", json = embed "consumers.json"),
  ],
  compatibilityDate = "2026-03-01",
  compatibilityFlags = ["experimental", "service_binding_extra_handlers"],
  durableObjectNamespaces = [ (className = "QueueShard", uniqueKey = "queues", enableSql = true) ],
  durableObjectStorage = (localDisk = "disk"),
);
