import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { program } from '../../help.ts'
import { UsageError } from '../../shared/flags.ts'
import { type Forwarded, forward, forwardedText } from '../../shared/forward.ts'
import { type KeptDelivery, writeDelivery } from '../../shared/kept-delivery.ts'
import { maskedUrl } from '../../shared/mask.ts'
import type { Screen } from '../../shared/screen.ts'
import { plain, shellQuoted } from '../../shared/text.ts'

interface ForwarderOptions {
  /** The URL to forward to. Without one, deliveries are only kept. */
  readonly to: string | undefined
  /** The folder for the deliveries. */
  readonly folder: string
  /** A secret that must not be printed. */
  readonly secret: string | undefined
}

/** A delivery that was kept, and forwarded if there is a URL to forward to. */
interface KeptAndForwarded {
  /** Absent if the file could not be written. */
  readonly file?: string
  readonly forwarded?: Forwarded
}

/** Keeps a delivery in a file of its own, and then forwards it. It never rejects. */
export type Forwarder = (delivery: KeptDelivery) => Promise<KeptAndForwarded>

/** Makes the folder for deliveries: the given one, or a new one among the temporary files. */
export async function makeFolder(given: string | undefined): Promise<string> {
  if (given === undefined) return mkdtemp(join(tmpdir(), `${program}-`))
  await mkdir(given, { recursive: true, mode: 0o700 }).catch((error) => {
    throw new Error(`--save ${shellQuoted(given)} is not a folder that can be made: ${error.code}`, { cause: error })
  })
  return given
}

/** @throws UsageError if the URL is where the command itself listens, so that each delivery would come back */
export function checkNotItself(to: string, port: number): void {
  const { hostname, port: given, protocol } = new URL(to)
  const isSame = Number(given || (protocol === 'https:' ? 443 : 80)) === port
  if (!isSame || !/^(localhost|127\.0\.0\.1|0\.0\.0\.0)$/.test(hostname)) return
  throw new UsageError(
    '--forward-to is where this command itself listens: give the URL of your server, or another --port',
  )
}

export function createForwarder({ to, folder, secret }: ForwarderOptions, { note, signal }: Screen): Forwarder {
  // It recognizes deliveries that come back, for example through a tunnel.
  const mark = ['Via', `1.1 ${program}-${randomBytes(8).toString('hex')}`] as const
  let count = 0

  async function keep(delivery: KeptDelivery): Promise<string | undefined> {
    count++
    const file = join(folder, `${new Date().toISOString().replaceAll(':', '-')}-${count}.http`)
    try {
      await writeDelivery(file, delivery)
      return file
    } catch (error) {
      note(plain(`a delivery could not be kept: ${(error as Error).message}`))
      return undefined
    }
  }

  return async (delivery) => {
    const isBack = delivery.fields.some(([name, value]) => name.toLowerCase() === 'via' && value.includes(mark[1]))
    if (isBack) return { forwarded: cameBack }
    const file = await keep(delivery)
    const forwarded = to === undefined ? undefined : await forward(delivery, { to, secret, mark, signal })
    return { ...(file !== undefined && { file }), ...(forwarded && { forwarded }) }
  }
}

const cameBack: Forwarded = {
  durationMs: 0,
  failure: { reason: 'connection', message: 'not forwarded: --forward-to leads back to this command' },
}

/** Prints the answer and the file. If the delivery was not acknowledged, it prints the command that sends it again. */
export function printForwarded({ file, forwarded }: KeptAndForwarded, to = '', { print, paint }: Screen): void {
  if (forwarded !== undefined) print(`  forwarded  ${forwardedText(forwarded, paint)}`)
  if (file === undefined) return
  if (forwarded?.failure === undefined) print(`  kept in    ${shellQuoted(file)}`)
  else print(`  again      ${program} resend ${shellQuoted(file)} --to ${shellQuoted(maskedUrl(to))}`)
}
