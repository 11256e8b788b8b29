import { WebhookError } from '../errors.ts'

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

  /** @throws WebhookError `invalid_option` */
  start({ timeoutMs = 10_000 }: { readonly timeoutMs?: number } = {}): Promise<Report> {
    if (!(timeoutMs >= 0)) throw new WebhookError('invalid_option', 'close: timeoutMs has to be 0 or more')
    this.#report ??= this.#run(timeoutMs)
    return this.#report
  }
}
