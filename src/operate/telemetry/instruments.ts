import type { Counter, Histogram, Meter, MetricOptions, ObservableGauge } from '@opentelemetry/api'

// Every metric: name, unit, meaning. docs/telemetry.md has the table.

/** The conventions' bounds (s). */
const conventional = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

/** Bounds around the sender's time limits (s): 1 for the test delivery, 3 for others. */
const acknowledgement = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10]

/** Bounds from a quick handler to an event that waited for a day (s). */
const handling = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600, 21_600, 86_400]

const step = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

const seconds = (description: string, explicitBucketBoundaries?: number[]): MetricOptions => ({
  unit: 's',
  description,
  ...(explicitBucketBoundaries && { advice: { explicitBucketBoundaries } }),
})

export interface Instruments {
  readonly deliveries: Counter
  readonly acknowledgements: Histogram
  readonly runs: Histogram
  readonly attempts: Counter
  readonly conflicts: Counter
  readonly events: Histogram
  readonly steps: Histogram
  readonly states: ObservableGauge
  readonly deadLetters: ObservableGauge
  readonly oldestWaiting: ObservableGauge
  readonly expected: ObservableGauge
}

export const createInstruments = (meter: Meter): Instruments => ({
  deliveries: meter.createCounter('messaging.client.consumed.messages', {
    unit: '{message}',
    description: 'Answered deliveries.',
  }),
  acknowledgements: meter.createHistogram(
    'media_webhooks.delivery.duration',
    seconds('Time from the call of the receiver to the acknowledgement.', acknowledgement),
  ),
  runs: meter.createHistogram('messaging.process.duration', seconds('Duration of a handler run.', conventional)),
  attempts: meter.createCounter('media_webhooks.attempts', {
    unit: '{attempt}',
    description: 'Attempts at an event. In each attempt, every handler that has not succeeded runs once.',
  }),
  conflicts: meter.createCounter('media_webhooks.conflicts', {
    unit: '{event}',
    description: 'Event keys with a duplicate whose payload differs from the accepted one.',
  }),
  events: meter.createHistogram(
    'media_webhooks.event.duration',
    seconds('Time from the receipt of the delivery until all handlers have succeeded.', handling),
  ),
  steps: meter.createHistogram(
    'media_webhooks.inbox.step.duration',
    seconds('Duration of an inbox storage operation.', step),
  ),
  states: meter.createObservableGauge('media_webhooks.inbox.events', {
    unit: '{event}',
    description: 'Unfinished events in the inbox.',
  }),
  deadLetters: meter.createObservableGauge('media_webhooks.inbox.dead_letters', {
    unit: '{dead_letter}',
    description: 'Dead letters in the inbox, unreadable deliveries included.',
  }),
  oldestWaiting: meter.createObservableGauge(
    'media_webhooks.inbox.oldest_waiting.age',
    seconds('Age of the oldest event that waits to start, or 0 if none waits.'),
  ),
  expected: meter.createObservableGauge('media_webhooks.inbox.expected', {
    unit: '{expectation}',
    description: 'Open expectations.',
  }),
})
