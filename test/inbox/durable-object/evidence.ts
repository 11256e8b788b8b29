import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Moment } from '../kill/judge.ts'
import type { Run } from '../kill/runs.ts'

/** A run of a handler in an object. */
interface ObjectRun extends Run {
  /** The instance of the object. */
  readonly instance: string
  readonly attempt: number
}

type Message = Partial<ObjectRun> & { readonly id: string; readonly failed?: boolean }

/**
 * The reports of the handlers in workerd to the test, since they cannot write to a file. They report each run when it
 * begins and when it ends, and each object before it is aborted. A handler waits for the answer before it continues.
 */
export class Evidence {
  readonly #server: Server
  readonly #runs = new Map<string, ObjectRun>()
  readonly #aborted = new Map<string, number>()
  readonly #held: ServerResponse[] = []
  /** Answers a run only when it is released, if this returns `true` for it. */
  holds: (run: ObjectRun) => boolean = () => false

  private constructor(server: Server) {
    this.#server = server
  }

  static async listen(): Promise<Evidence> {
    const server = createServer()
    const evidence = new Evidence(server)
    server.on('request', async (request, response) => {
      let text = ''
      for await (const chunk of request) text += chunk
      if (evidence.#take(request.url ?? '', JSON.parse(text))) evidence.#held.push(response)
      else response.end()
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    return evidence
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Returns `true` if the answer has to wait. */
  #take(path: string, { id, failed = false, ...message }: Message): boolean {
    const now = Date.now()
    if (path === '/aborted') this.#aborted.set(message.instance as string, now)
    if (path === '/end') Object.assign(this.#runs.get(id) as ObjectRun, { endedAt: now, failed })
    if (path !== '/begin') return false
    const run = { ...message, beganAt: now } as ObjectRun
    this.#runs.set(id, run)
    return this.holds(run)
  }

  release(): void {
    this.holds = () => false
    for (const response of this.#held.splice(0)) response.end()
  }

  /** The runs for a media item, in the order in which they began. */
  of(mediaId: string): readonly ObjectRun[] {
    return [...this.#runs.values()].filter(({ key }) => key === mediaId)
  }

  /**
   * Every run. Those of an instance that was aborted have a process of their own, as the instance then ends by itself.
   */
  runs(): readonly Run[] {
    const processOf = ({ process, instance }: ObjectRun) => (this.#aborted.has(instance) ? instance : process)
    return [...this.#runs.values()].map((run) => ({ ...run, process: processOf(run) }))
  }

  /** The moments just before an instance was aborted. */
  aborts(): readonly Moment[] {
    return [...this.#aborted].map(([process, at]) => ({ process, at }))
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }
}
