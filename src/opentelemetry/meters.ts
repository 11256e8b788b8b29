import { type Attributes, type MeterProvider, metrics } from '@opentelemetry/api'
import type { AttemptReport, HandlingReport } from '../handlers/reports.ts'
import type { Inbox } from '../inbox/inbox.ts'
import type { DeliveryReport } from '../receiver/hooks.ts'
import { destinationOf, limitedErrorTypes, scope, system } from './attributes.ts'
import { observeInbox } from './gauges.ts'
import { createInstruments, type Instruments } from './instruments.ts'

interface MetersOptions {
  /** The attributes of every metric of the receiver. */
  readonly own: Attributes
  readonly meterProvider: MeterProvider | undefined
}

/** Records the metrics of a receiver. */
export class Meters {
  readonly #own: Attributes
  readonly #given: MeterProvider | undefined
  readonly #errorType = limitedErrorTypes()
  #provider: MeterProvider | undefined
  #instruments: Instruments | undefined
  #ofInbox: Attributes
  /** Absent before the inbox is open and once it begins to close. */
  #observed: Inbox | undefined
  #stopObserving = () => {}

  constructor({ own, meterProvider }: MetersOptions) {
    this.#own = own
    this.#ofInbox = own
    this.#given = meterProvider
  }

  opened(inbox: Inbox, name: string): void {
    this.#observed = inbox
    this.#ofInbox = { ...this.#own, 'media_webhooks.inbox': name }
    this.#current()
  }

  closing(): void {
    this.#observed = undefined
    this.#stopObserving()
  }

  /**
   * The instruments of the provider that is registered now. The global provider of metrics is not one that stands for a
   * later one, so an SDK that starts after the receiver would get nothing.
   */
  #current(): Instruments {
    const provider = this.#given ?? metrics.getMeterProvider()
    if (this.#instruments !== undefined && this.#provider === provider) return this.#instruments
    const meter = provider.getMeter(scope)
    this.#provider = provider
    this.#instruments = createInstruments(meter)
    this.#stopObserving()
    if (this.#observed !== undefined) {
      this.#stopObserving = observeInbox(meter, this.#instruments, this.#observed, this.#ofInbox)
    }
    return this.#instruments
  }

  delivery({ outcome, status, type, durationMs }: DeliveryReport): void {
    const { deliveries, acknowledgements } = this.#current()
    const attributes: Attributes = {
      ...system,
      ...this.#own,
      'messaging.operation.name': 'receive',
      'media_webhooks.outcome': outcome,
    }
    if (type !== undefined) attributes['messaging.destination.name'] = destinationOf(type)
    if (status !== 200) attributes['error.type'] = outcome
    deliveries.add(1, attributes)
    acknowledgements.record(durationMs / 1_000, { ...this.#own, 'media_webhooks.outcome': outcome })
  }

  handling(report: HandlingReport): void {
    const attributes: Attributes = {
      ...system,
      ...this.#own,
      'messaging.operation.name': 'process',
      'messaging.destination.name': destinationOf(report.type),
      'media_webhooks.handler': report.handler,
      'media_webhooks.outcome': report.outcome,
    }
    if ('error' in report) attributes['error.type'] = this.#errorType(report.error)
    this.#current().runs.record(report.durationMs / 1_000, attributes)
  }

  attempt({ outcome, type, sinceReceivedMs }: AttemptReport): void {
    const { attempts, events } = this.#current()
    const destination = { ...this.#own, 'messaging.destination.name': destinationOf(type) }
    attempts.add(1, { ...destination, 'media_webhooks.outcome': outcome })
    if (outcome === 'handled') events.record(sinceReceivedMs / 1_000, destination)
  }

  measured(step: string, durationMs: number, error: unknown): void {
    const attributes: Attributes = { ...this.#ofInbox, 'media_webhooks.step': step }
    if (error !== undefined) attributes['error.type'] = this.#errorType(error)
    this.#current().steps.record(durationMs / 1_000, attributes)
  }
}
