import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pasted, program } from '../../help.ts'
import { UsageError } from '../../shared/flags.ts'
import { type Forwarded, forward, forwardedText } from '../../shared/forward.ts'
import { type KeptDelivery, writeDelivery } from '../../shared/kept-delivery.ts'
import { maskedUrl } from '../../shared/mask.ts'
import type { Screen } from '../../shared/screen.ts'
import { plain, shellQuoted } from '../../shared/text.ts'

interface ForwarderOptions {
  /** Without a URL, deliveries are only saved. */
  readonly to: string | undefined
  readonly folder: string
  /** Never printed. */
  readonly secret: string | undefined
}

interface KeptAndForwarded {
  /** Absent if writing it failed. */
  readonly file?: string
  readonly forwarded?: Forwarded
}

/** Saves a delivery in its own file, then forwards it. Never rejects. */
export type Forwarder = (delivery: KeptDelivery) => Promise<KeptAndForwarded>

/** Creates the given folder, or a temporary one. */
export async function makeFolder(given: string | undefined): Promise<string> {
  if (given === undefined) return mkdtemp(join(tmpdir(), `${program}-`))
  await mkdir(given, { recursive: true, mode: 0o700 }).catch((error) => {
    throw new Error(`cannot create the folder --save ${shellQuoted(given)}: ${error.code}`, { cause: error })
  })
  return given
}

/** @throws UsageError if the command would forward to itself */
export function checkNotItself(to: string, port: number): void {
  const { hostname, port: given, protocol } = new URL(to)
  const isSame = Number(given || (protocol === 'https:' ? 443 : 80)) === port
  if (!isSame || !/^(localhost|127\.0\.0\.1|0\.0\.0\.0)$/.test(hostname)) return
  throw new UsageError('--forward-to points at this command itself: pass the URL of your server, or another --port')
}

export function createForwarder({ to, folder, secret }: ForwarderOptions, { note, signal }: Screen): Forwarder {
  // Detects loops, for example through a tunnel.
  const mark = ['Via', `1.1 ${program}-${randomBytes(8).toString('hex')}`] as const
  let count = 0

  async function keep(delivery: KeptDelivery): Promise<string | undefined> {
    count++
    const file = join(folder, `${new Date().toISOString().replaceAll(':', '-')}-${count}.http`)
    try {
      await writeDelivery(file, delivery)
      return file
    } catch (error) {
      note(plain(`could not save a delivery: ${(error as Error).message}`))
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

/** Prints the answer and the file, or the command to re-send it if it was not acknowledged. */
export function printForwarded({ file, forwarded }: KeptAndForwarded, to = '', { print, paint }: Screen): void {
  if (forwarded !== undefined) print(`  forwarded  ${forwardedText(forwarded, paint)}`)
  if (file === undefined) return
  if (forwarded?.failure === undefined) print(`  saved in   ${shellQuoted(file)}`)
  else print(`  again      ${pasted} resend ${shellQuoted(file)} --to ${shellQuoted(maskedUrl(to))}`)
}
