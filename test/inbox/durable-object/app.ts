import type { InboxStats } from '../../../src/index.ts'
import { Evidence } from './evidence.ts'
import { type RunningWorker, WorkerOnDisk } from './workerd.ts'

export interface AppOptions {
  readonly shards?: number
  readonly isolates?: number
  /** The share of the runs that fail. */
  readonly unlucky?: number
}

/** The worker of workers/app.ts with its evidence. It can be killed and started again. */
export class App {
  readonly evidence: Evidence
  readonly #disk: WorkerOnDisk
  readonly #options: AppOptions
  #worker: RunningWorker | undefined
  #origins: readonly string[] = []
  #starts = 0

  private constructor(disk: WorkerOnDisk, evidence: Evidence, options: AppOptions) {
    this.#disk = disk
    this.evidence = evidence
    this.#options = options
  }

  static async make(binary: string, options: AppOptions = {}): Promise<App> {
    const disk = await WorkerOnDisk.make(binary, {
      entry: new URL('workers/app.ts', import.meta.url),
      classes: [{ binding: 'MEDIA_INBOX', className: 'MediaInbox' }],
      isolates: options.isolates ?? 1,
    })
    return new App(disk, await Evidence.listen(), options)
  }

  /** The name of the workerd that runs, in the evidence. */
  get name(): string {
    return `workerd-${this.#starts}`
  }

  /** The URLs of the webhook, one for each isolate; none while it does not run. */
  get urls(): readonly string[] {
    return this.#origins.map((origin) => `${origin}/`)
  }

  async start(variables: Readonly<Record<string, string>> = {}): Promise<void> {
    this.#starts++
    const { shards = 4, unlucky = 0 } = this.#options
    this.#worker = await this.#disk.start({
      NAME: this.name,
      EVIDENCE: this.evidence.url,
      SHARDS: `${shards}`,
      UNLUCKY: `${unlucky}`,
      ...variables,
    })
    this.#origins = await this.#worker.origins()
  }

  /** Asks the worker a question that is not a delivery. Throws the error that it answers. */
  async ask<Result>(path: string): Promise<Result> {
    const answer = await fetch(`${this.#origins[0]}${path}`)
    const { result, error } = (await answer.json()) as { result: Result; error?: string }
    if (error !== undefined) throw new Error(error)
    return result
  }

  /** The number of events that are accepted and have not ended, or that are expected. */
  async unfinished(): Promise<number> {
    const { waiting, running, retrying, expected = 0 } = await this.ask<InboxStats>('/stats')
    return waiting + running + retrying + expected
  }

  async stop(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    this.#origins = []
    await this.#worker?.stop(signal)
  }

  /** Ends it, and removes what it has stored. */
  async remove(): Promise<void> {
    this.evidence.close()
    await this.stop()
    await this.#disk.remove()
  }
}
