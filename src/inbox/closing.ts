import { WebhookError } from '../errors.ts'
import { checkOptions, timeLimit } from '../internal/check-options.ts'
import type { CloseOptions } from './inbox.ts'

/** A shutdown that happens once, however often it is asked for. */
export class Closing<Report> {
  readonly #message: string
  readonly #run: (timeoutMs: number) => Promise<Report>
  #report: Promise<Report> | undefined

  /**
   * @param message the message of the error once it has started
   * @param run closes it, and waits up to `timeoutMs` for running work
   */
  constructor(message: string, run: (timeoutMs: number) => Promise<Report>) {
    this.#message = message
    this.#run = run
  }

  get hasStarted(): boolean {
    return this.#report !== undefined
  }

  /** @throws WebhookError `closing` once it has started */
  checkOpen(): void {
    if (this.hasStarted) throw new WebhookError('closing', this.#message)
  }

  /**
   * Closes also with options that are invalid, and rejects afterwards: at a shutdown, an early error would cost the events
   * that still wait.
   * @throws WebhookError `invalid_option`
   */
  start(options: CloseOptions = {}): Promise<Report> {
    try {
      checkOptions('close', options, { timeoutMs: timeLimit })
    } catch (error) {
      return this.start().then(() => Promise.reject(error))
    }
    this.#report ??= this.#run(options.timeoutMs ?? 10_000)
    return this.#report
  }
}
