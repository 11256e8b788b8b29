import type { Outbox } from '../../../emulator/sending/outbox.ts'
import type { DeliveryRecord, Sending } from '../../../emulator/sending/sending.ts'
import { withoutSecret } from '../../shared/mask.ts'
import type { Screen } from '../../shared/screen.ts'
import { align, plain } from '../../shared/text.ts'

/** Prints deliveries as they are made. */
export interface DeliveryPrinter {
  /** Prints the deliveries of a sending that were not printed yet. */
  printNew(sendingId: string): void
  /** How many events were acknowledged so far. */
  acknowledged(): number
  /** Says what came of it all. @returns whether everything that was sent was acknowledged */
  summarize(): boolean
}

interface Shown {
  readonly json?: true | undefined
  readonly secret?: string | undefined
  readonly password?: string | undefined
}

const widths = [12, 17, 9, 4, -8]

export function createDeliveryPrinter(
  outbox: Outbox,
  { json, secret, password }: Shown,
  screen: Screen,
): DeliveryPrinter {
  const printed = new Map<string, number>()
  const hide = (text: string) => withoutSecret(withoutSecret(text, secret), password)

  function print({ payload }: Sending, delivery: DeliveryRecord): void {
    const { attempt, copy, startedAt, durationMs, answer, failure, retryInMs } = delivery
    const body = answer && hide(answer.body)
    if (json) {
      const { type, media_id: mediaId, emitted_at: emittedAt, qualities } = payload
      const event = { type, mediaId, emittedAt, qualities }
      return screen.json({
        ...event,
        attempt,
        copy,
        startedAt,
        durationMs,
        status: answer?.status,
        answer: body,
        failure,
        retryInMs,
      })
    }
    const facts = [
      startedAt.toISOString().slice(11, 23),
      payload.type,
      copy ? 'copy' : `attempt ${attempt}`,
      `${answer?.status ?? '-'}`,
      `${durationMs.toFixed(1)} ms`,
    ]
    const cells = align(facts, widths)
    const style = failure === undefined ? 'green' : 'red'
    const told = [...cells.with(3, screen.paint(style, cells[3] ?? '')), plain((body ?? '').slice(0, 200))]
    screen.print(told.join('  ').trimEnd())
    if (failure === undefined) return
    const retry = retryInMs === undefined ? '' : `; delivered again in ${retryInMs / 1_000} s`
    screen.print(`${' '.repeat(14)}not acknowledged (${failure.reason}): ${failure.message}${retry}`)
  }

  const count = (wanted: Sending['state']) => outbox.list().filter(({ state }) => state === wanted).length

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
      const failedCopies = sendings
        .flatMap(({ deliveries }) => deliveries)
        .filter(({ copy, failure }) => copy && failure)
      const fine = count('failed') === 0 && failedCopies.length === 0
      if (!json) {
        const copies = failedCopies.length === 0 ? '' : `, ${failedCopies.length} copies not`
        const dropped = count('dropped') === 0 ? '' : `, ${count('dropped')} dropped by the fault`
        const text = `${count('acknowledged')} of ${sendings.length} acknowledged${copies}${dropped}`
        screen.print(`\n${screen.paint(fine ? 'green' : 'red', text)}`)
      }
      return fine
    },
  }
}
