import type { Outbox } from '../../../service/emulator/sending/outbox.ts'
import type { DeliveryRecord, Sending } from '../../../service/emulator/sending/sending.ts'
import { isCredential, masked } from '../../shared/credentials.ts'
import { maskedAnswer, printDelivery } from '../../shared/print-delivery.ts'
import type { Screen } from '../../shared/screen.ts'
import { plain, table } from '../../shared/text.ts'

interface PrintOptions {
  readonly json?: true | undefined
  /** Never printed, even if nothing is signed with them. */
  readonly secret?: string | undefined
  readonly password?: string | undefined
  readonly headers?: true | undefined
}

export function deliveryPrinter({ json, secret, password, headers }: PrintOptions, screen: Screen) {
  const secrets = [secret, password]
  return (delivery: DeliveryRecord, sending: Sending): void => {
    const sent = headers && maskHeaders(delivery)
    if (json) {
      screen.json({ ...deliveryJson(delivery, sending, maskedAnswer(delivery, sending, secrets)), headers: sent })
      return
    }
    printDelivery(delivery, sending, screen, { secrets })
    if (sent !== undefined) screen.print(screen.paint('dim', table(sent, ' '.repeat(14))))
  }
}

const maskHeaders = ({ request }: DeliveryRecord) =>
  Object.entries(request.headers).map(([name, value]) => [
    name,
    plain(isCredential(name, value) ? masked(value) : value),
  ])

export const countAcknowledged = (outbox: Outbox): number => count(outbox, 'acknowledged')

/** @returns `true` if everything sent was acknowledged */
export function printSummary(outbox: Outbox, { json }: Pick<PrintOptions, 'json'>, { print, paint }: Screen): boolean {
  const sendings = outbox.list()
  const deliveries = sendings.flatMap((sending) => sending.deliveries)
  const failedCopies = deliveries.filter(({ copy, failure }) => copy && failure).length
  const isFine = count(outbox, 'failed') === 0 && failedCopies === 0
  if (json) return isFine
  const copies = failedCopies === 0 ? '' : `, ${failedCopies} copies not`
  const dropped = count(outbox, 'dropped') === 0 ? '' : `, ${count(outbox, 'dropped')} dropped by the fault`
  const text = `${countAcknowledged(outbox)} of ${sendings.length} acknowledged${copies}${dropped}`
  print(`\n${paint(isFine ? 'green' : 'red', text)}`)
  return isFine
}

const count = (outbox: Outbox, wanted: Sending['state']): number =>
  outbox.list().filter(({ state }) => state === wanted).length

function deliveryJson(delivery: DeliveryRecord, { payload, body }: Sending, answerBody: string | undefined) {
  const { type, media_id: mediaId, emitted_at: emittedAt, qualities } = payload
  const { attempt, copy, startedAt, durationMs, answer, failure, retryInMs } = delivery
  const status = answer?.status
  const event = Object.entries({ type, mediaId, emittedAt, qualities })
  // Other services' bodies may lack these fields.
  const known = Object.fromEntries(body === undefined ? event : event.filter(([, value]) => value !== ''))
  return {
    ...known,
    attempt,
    copy,
    startedAt,
    durationMs,
    status,
    answer: answerBody,
    failure,
    retryInMs: retryInMs && Math.round(retryInMs),
  }
}
