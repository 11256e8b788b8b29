import { durableObjectInbox, type InboxObject, inboxObject } from '../../../src/inbox/durable-object/cloudflare.ts'
import type { CloseOptions, Inbox, InboxHost } from '../../../src/inbox/inbox.ts'
import { storageInNode } from './storage-in-node.ts'

/**
 * The objects of an inbox, made when they are first asked, with the Worker's inbox in front of them. All of it runs in Node,
 * and everything between the two goes through requests.
 */
export class ObjectsInNode {
  /** The steps that the objects were asked for. */
  readonly asked: { readonly name: string; readonly step: string }[] = []
  readonly storages: ReturnType<typeof storageInNode>[] = []
  readonly #inboxes: Inbox[] = []
  readonly #byName = new Map<string, InboxObject>()

  readonly #shards: number

  /** @param shards 1 by default: deaths of the same millisecond have an order within an object only, and tests are quick */
  constructor(shards = 1) {
    this.#shards = shards
  }

  open(host: InboxHost): Inbox {
    const ask = (id: object, request: Request, step: string) => {
      const { name } = id as { name: string }
      this.asked.push({ name, step })
      return this.#get(name, host).fetch(request)
    }
    const worker = durableObjectInbox({
      shards: this.#shards,
      namespace: {
        idFromName: (name) => ({ name }),
        get: (id) => ({ fetch: (url, init) => ask(id, new Request(url, init), JSON.parse(init.body).step) }),
      },
    }).open(host)
    return Object.assign(worker, { close: this.#closing(worker.close.bind(worker)) })
  }

  #get(name: string, host: InboxHost): InboxObject {
    const known = this.#byName.get(name)
    if (known !== undefined) return known
    const storage = storageInNode()
    storage.sql.exec('CREATE TABLE written (content TEXT)')
    const MediaInbox = inboxObject((_env, definition) => {
      const inbox = definition.open(host)
      this.#inboxes.push(inbox)
      return { inbox }
    })
    const object: InboxObject = new MediaInbox({ storage: this.#withAlarm(storage, () => object.alarm()) }, {})
    this.storages.push(storage)
    this.#byName.set(name, object)
    return object
  }

  /** Adds an alarm to a storage. One that is set in the constructor of its object rings after it. */
  #withAlarm(storage: ReturnType<typeof storageInNode>, ring: () => Promise<void>) {
    let timer: NodeJS.Timeout | undefined
    return {
      ...storage,
      async setAlarm(at: number) {
        clearTimeout(timer)
        timer = setTimeout(ring, at - Date.now()).unref()
      },
      async deleteAlarm() {
        clearTimeout(timer)
      },
    }
  }

  /** The platform never closes an object, and a test closes what it has opened. */
  #closing(closeWorker: Inbox['close']): Inbox['close'] {
    return async (options?: CloseOptions) => {
      const closed = closeWorker(options)
      const reports = await Promise.all(this.#inboxes.map((inbox) => inbox.close(options)))
      await closed
      return { unfinished: reports.flatMap(({ unfinished }) => unfinished) }
    }
  }
}
