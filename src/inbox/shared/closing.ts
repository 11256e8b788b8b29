import { WebhookError } from '../../errors.ts'
import type { CloseOptions, CloseReport } from '../inbox.ts'

/** The closing of an inbox. It happens once, however often it is asked for. */
export class Closing {
  readonly #run: (timeoutMs: number) => Promise<CloseReport>
  #report: Promise<CloseReport> | undefined

  /** @param run closes the inbox, and waits up to `timeoutMs` for events to finish */
  constructor(run: (timeoutMs: number) => Promise<CloseReport>) {
    this.#run = run
  }

  get hasStarted(): boolean {
    return this.#report !== undefined
  }

  /** @throws WebhookError `closing` once it has started */
  checkOpen(): void {
    if (this.hasStarted) throw new WebhookError('closing', 'the inbox is closing')
  }

  /** @throws WebhookError `invalid_option` */
  start({ timeoutMs = 10_000 }: CloseOptions = {}): Promise<CloseReport> {
    if (!(timeoutMs >= 0)) throw new WebhookError('invalid_option', 'close: timeoutMs has to be 0 or more')
    this.#report ??= this.#run(timeoutMs)
    return this.#report
  }
}
