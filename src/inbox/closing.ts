import { WebhookError } from '../errors.ts'
import { checkOptions, timeLimit } from '../internal/check-options.ts'
import type { CloseOptions } from './inbox.ts'

/** An idempotent shutdown. */
export class Closing<Report> {
  readonly #message: string
  readonly #run: (timeoutMs: number) => Promise<Report>
  #report: Promise<Report> | undefined

  /** @param message error message for calls after the start */
  constructor(message: string, run: (timeoutMs: number) => Promise<Report>) {
    this.#message = message
    this.#run = run
  }

  get hasStarted(): boolean {
    return this.#report !== undefined
  }

  /** @throws WebhookError `closing` once the shutdown has started */
  checkOpen(): void {
    if (this.hasStarted) throw new WebhookError('closing', this.#message)
  }

  /**
   * Rejects for invalid options, but only after closing: failing early at shutdown would lose waiting events.
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
