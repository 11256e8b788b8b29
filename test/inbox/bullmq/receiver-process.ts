import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/** Tells a receiver in a process of its own what to do. */
export interface ReceiverTask {
  /** URL of Redis. */
  readonly redis: string
  readonly queue: string
  /**
   * `effects`: counts each run of a handler in the hash of that name, by event key. `held`: has a handler that ends
   * immediately, and one that waits for a message. `none`: handles nothing. `crashing`: kills itself 0.3 s after it
   * started to handle an event whose key begins with `culprit`, and counts the runs of others that have lasted 1 s.
   */
  readonly handling: 'changes' | 'held' | 'none' | 'crashing'
  readonly leaseMs: number
}

export type FromReceiver =
  | { readonly did: 'listen'; readonly port: number }
  | { readonly did: 'first' | 'second'; readonly key: string }
  | { readonly did: 'abort'; readonly key: string; readonly reason: string }
export type ToReceiver = { readonly finish: string }

/** A receiver in a process of its own, which a test can kill and pause. */
export class ReceiverProcess {
  readonly said: FromReceiver[] = []
  readonly #child: ChildProcess
  #onNews = () => {}

  private constructor(child: ChildProcess) {
    this.#child = child
    child.on('message', (message: FromReceiver) => {
      this.said.push(message)
      this.#onNews()
    })
    child.once('exit', () => this.#onNews())
  }

  static async start(task: ReceiverTask): Promise<ReceiverProcess> {
    const program = fileURLToPath(new URL('./receiver-child.ts', import.meta.url))
    const child = fork(program, [JSON.stringify(task)], {
      execArgv: ['--import', 'tsx'],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    const receiver = new ReceiverProcess(child)
    await receiver.saying(({ did }) => did === 'listen')
    return receiver
  }

  get url(): string {
    const listening = this.said.find((message) => message.did === 'listen')
    return `http://127.0.0.1:${listening?.port}/webhooks/media`
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null
  }

  /** Waits until it has sent a message for which the condition holds. */
  async saying(holds: (message: FromReceiver) => boolean): Promise<void> {
    while (!this.said.some(holds)) {
      if (this.hasEnded) throw new Error('the receiver ended')
      await new Promise<void>((resolve) => {
        this.#onNews = resolve
      })
    }
  }

  /** Waits until the process has ended, or the condition holds. */
  async endsOr(holds: () => Promise<boolean>): Promise<void> {
    while (!this.hasEnded && !(await holds())) await sleep(50)
  }

  tell(message: ToReceiver): void {
    this.#child.send(message)
  }

  pause(): void {
    this.#child.kill('SIGSTOP')
  }

  resume(): void {
    this.#child.kill('SIGCONT')
  }

  async kill(): Promise<void> {
    if (this.hasEnded) return
    const exit = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await exit
  }
}
