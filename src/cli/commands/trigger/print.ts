import type { Outbox } from '../../../emulator/sending/outbox.ts'
import type { DeliveryRecord, Sending } from '../../../emulator/sending/sending.ts'
import { secretsIn, withoutSecret } from '../../shared/mask.ts'
import { withRefusedHint } from '../../shared/refused.ts'
import type { Screen } from '../../shared/screen.ts'
import { align, plain } from '../../shared/text.ts'

/** Prints the deliveries of an outbox while they are made. */
export interface DeliveryPrinter {
  /** Prints the deliveries of a sending that were not printed yet. */
  printNew(sendingId: string): void
  /** Counts the events that were acknowledged so far. */
  acknowledged(): number
  /**
   * Prints the totals.
   * @returns `true` if everything that was sent was acknowledged
   */
  summarize(): boolean
}

interface PrintOptions {
  readonly json?: true | undefined
  /** The receiver's URL. Its secrets must not be printed, nor those below. */
  readonly to: string
  readonly secret?: string | undefined
  readonly password?: string | undefined
}

export function createDeliveryPrinter(
  outbox: Outbox,
  { json, to, secret, password }: PrintOptions,
  screen: Screen,
): DeliveryPrinter {
  const secrets = [secret, password, ...secretsIn(to)]
  const printed = new Map<string, number>()
  const count = (wanted: Sending['state']) => outbox.list().filter(({ state }) => state === wanted).length

  function print(sending: Sending, delivery: DeliveryRecord): void {
    const body = delivery.answer && withoutSecret(delivery.answer.body, ...secrets)
    if (json) screen.json(deliveryJson(sending, delivery, body))
    else printDelivery(sending, delivery, body, screen)
  }

  return {
    acknowledged: () => count('acknowledged'),
    printNew(id) {
      const sending = outbox.get(id)
      if (sending === undefined) return
      for (const delivery of sending.deliveries.slice(printed.get(id) ?? 0)) print(sending, delivery)
      printed.set(id, sending.deliveries.length)
    },
    summarize() {
      const sendings = outbox.list()
      const deliveries = sendings.flatMap((sending) => sending.deliveries)
      const failedCopies = deliveries.filter(({ copy, failure }) => copy && failure).length
      const fine = count('failed') === 0 && failedCopies === 0
      if (json) return fine
      const copies = failedCopies === 0 ? '' : `, ${failedCopies} copies not`
      const dropped = count('dropped') === 0 ? '' : `, ${count('dropped')} dropped by the fault`
      const text = `${count('acknowledged')} of ${sendings.length} acknowledged${copies}${dropped}`
      screen.print(`\n${screen.paint(fine ? 'green' : 'red', text)}`)
      return fine
    },
  }
}

function deliveryJson({ payload }: Sending, delivery: DeliveryRecord, body: string | undefined) {
  const { type, media_id: mediaId, emitted_at: emittedAt, qualities } = payload
  const { attempt, copy, startedAt, durationMs, answer, failure, retryInMs } = delivery
  const status = answer?.status
  const event = { type, mediaId, emittedAt, qualities }
  return { ...event, attempt, copy, startedAt, durationMs, status, answer: body, failure, retryInMs }
}

const widths = [12, 17, 9, 4, -8]

function printDelivery({ payload }: Sending, delivery: DeliveryRecord, body = '', { print, paint }: Screen): void {
  const { attempt, copy, startedAt, durationMs, answer, failure, retryInMs } = delivery
  const cells = align(
    [
      startedAt.toISOString().slice(11, 23),
      payload.type,
      copy ? 'copy' : `attempt ${attempt}`,
      `${answer?.status ?? '-'}`,
      `${durationMs.toFixed(1)} ms`,
    ],
    widths,
  )
  const status = paint(failure === undefined ? 'green' : 'red', cells[3] ?? '')
  print([...cells.with(3, status), plain(body.slice(0, 200))].join('  ').trimEnd())
  if (failure === undefined) return
  const retry = retryInMs === undefined ? '' : `; retry in ${retryInMs / 1_000} s`
  print(`${' '.repeat(14)}not acknowledged (${failure.reason}): ${withRefusedHint(failure.message)}${retry}`)
}
