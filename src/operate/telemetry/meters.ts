import { type Attributes, createNoopMeter, type MeterProvider, metrics } from '@opentelemetry/api'
import type { AttemptReport, RunReport } from '../../handlers/reports.ts'
import type { Inbox } from '../../inbox/inbox.ts'
import type { ConflictReport, DeliveryReport } from '../../receiver/hooks.ts'
import { type Destinations, limitedErrorTypes, scope, system } from './attributes.ts'
import { observeInbox } from './gauges.ts'
import { createInstruments, type Instruments } from './instruments.ts'

interface MetersOptions {
  /** On every metric of the receiver. */
  readonly own: Attributes
  readonly destinations: Destinations
  readonly meterProvider: MeterProvider | undefined
}

/** Given by providers without an SDK: records nothing. */
const noMeter = createNoopMeter()

export class Meters {
  readonly #own: Attributes
  readonly #destinations: Destinations
  readonly #configuredProvider: MeterProvider | undefined
  readonly #errorType = limitedErrorTypes()
  readonly #sets = new AttributeSets()
  #provider: MeterProvider | undefined
  #instruments: Instruments | undefined
  #ofInbox: Attributes
  /** Set from the opening of the inbox until it starts to close. */
  #observed: Inbox | undefined
  #stopObserving = () => {}

  constructor({ own, destinations, meterProvider }: MetersOptions) {
    this.#destinations = destinations
    this.#own = own
    this.#ofInbox = own
    this.#configuredProvider = meterProvider
  }

  opened(inbox: Inbox, name: string): void {
    this.#observed = inbox
    this.#ofInbox = { ...this.#own, 'media_webhooks.inbox': name }
    // Instruments created before the inbox was open don't observe it: recreate them.
    this.#provider = undefined
    this.#current()
  }

  closing(): void {
    this.#observed = undefined
    this.#stopObserving()
  }

  /**
   * Looks the provider up each time: unlike the tracer's, the global meter provider does not forward to one registered
   * later, so an SDK started after the receiver would get nothing.
   */
  #current(): Instruments | undefined {
    const provider = this.#configuredProvider ?? metrics.getMeterProvider()
    if (this.#provider === provider) return this.#instruments
    const meter = provider.getMeter(scope)
    this.#provider = provider
    this.#stopObserving()
    this.#stopObserving = () => {}
    if (meter === noMeter) {
      this.#instruments = undefined
      return undefined
    }
    const instruments = createInstruments(meter)
    this.#instruments = instruments
    if (this.#observed !== undefined)
      this.#stopObserving = observeInbox(meter, instruments, this.#observed, this.#ofInbox)
    return instruments
  }

  delivery({ outcome, status, type, durationMs }: DeliveryReport): void {
    const instruments = this.#current()
    if (instruments === undefined) return
    const destination = type && this.#destinations.of(type)
    const ofDelivery = this.#sets.of(`delivery ${outcome} ${destination}`, () => ({
      ...system,
      ...this.#own,
      'messaging.operation.name': 'receive',
      'media_webhooks.outcome': outcome,
      ...(destination && { 'messaging.destination.name': destination }),
      ...(status !== 200 && { 'error.type': outcome }),
    }))
    const ofOutcome = this.#sets.of(`outcome ${outcome}`, () => ({ ...this.#own, 'media_webhooks.outcome': outcome }))
    instruments.deliveries.add(1, ofDelivery)
    instruments.acknowledgements.record(durationMs / 1_000, ofOutcome)
  }

  handling(report: RunReport): void {
    const instruments = this.#current()
    if (instruments === undefined) return
    const { handler, outcome } = report
    const destination = this.#destinations.of(report.type)
    const error = 'error' in report ? this.#errorType(report.error) : undefined
    const ofRun = this.#sets.of(`run ${destination} ${outcome} ${error} ${handler}`, () => ({
      ...system,
      ...this.#own,
      'messaging.operation.name': 'process',
      'messaging.destination.name': destination,
      'media_webhooks.handler': handler,
      'media_webhooks.outcome': outcome,
      ...(error && { 'error.type': error }),
    }))
    instruments.runs.record(report.durationMs / 1_000, ofRun)
  }

  attempt({ outcome, type, sinceReceivedMs }: AttemptReport): void {
    const instruments = this.#current()
    if (instruments === undefined) return
    const destination = this.#destinations.of(type)
    const ofType = this.#ofType(destination)
    const ofAttempt = this.#sets.of(`attempt ${destination} ${outcome}`, () => ({
      ...ofType,
      'media_webhooks.outcome': outcome,
    }))
    instruments.attempts.add(1, ofAttempt)
    if (outcome === 'handled') instruments.events.record(sinceReceivedMs / 1_000, ofType)
  }

  conflict({ type }: ConflictReport): void {
    this.#current()?.conflicts.add(1, this.#ofType(this.#destinations.of(type)))
  }

  #ofType(destination: string): Attributes {
    return this.#sets.of(`type ${destination}`, () => ({ ...this.#own, 'messaging.destination.name': destination }))
  }

  measured(step: string, durationMs: number, thrown: unknown): void {
    const instruments = this.#current()
    if (instruments === undefined) return
    const error = thrown === undefined ? undefined : this.#errorType(thrown)
    const ofStep = this.#sets.of(`step ${step} ${error}`, () => ({
      ...this.#ofInbox,
      'media_webhooks.step': step,
      ...(error && { 'error.type': error }),
    }))
    instruments.steps.record(durationMs / 1_000, ofStep)
  }
}

/** Caches attribute sets: building one costs as much as recording a value with it. */
class AttributeSets {
  readonly #sets = new Map<string, Attributes>()

  of(key: string, make: () => Attributes): Attributes {
    const known = this.#sets.get(key)
    if (known !== undefined) return known
    const made = make()
    this.#sets.set(key, made)
    return made
  }
}
