import { WebhookError } from '../errors.ts'

/** A shutdown that happens once, however often it is asked for. */
export class Closing<Report> {
  readonly #what: string
  readonly #run: (timeoutMs: number) => Promise<Report>
  #report: Promise<Report> | undefined

  /**
   * @param what names in errors what closes
   * @param run closes it, and waits up to `timeoutMs` for running work
   */
  constructor(what: string, run: (timeoutMs: number) => Promise<Report>) {
    this.#what = what
    this.#run = run
  }

  get hasStarted(): boolean {
    return this.#report !== undefined
  }

  /** @throws WebhookError `closing` once it has started */
  checkOpen(): void {
    if (this.hasStarted) throw new WebhookError('closing', `${this.#what} is closing`)
  }

  /** @throws WebhookError `invalid_option` */
  start({ timeoutMs = 10_000 }: { readonly timeoutMs?: number } = {}): Promise<Report> {
    if (!(timeoutMs >= 0)) throw new WebhookError('invalid_option', 'close: timeoutMs has to be 0 or more')
    this.#report ??= this.#run(timeoutMs)
    return this.#report
  }
}
