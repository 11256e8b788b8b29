import { createHmac } from 'node:crypto'
import type { HashAlgorithm, SignatureEncoding, SignedDelivery } from '../../../index.ts'
import { type SigningOptions, verifierFor } from '../../../service/emulator/sending/signing.ts'

export interface ReceivedDelivery extends SignedDelivery {
  readonly fields: readonly (readonly [name: string, value: string])[]
}

/**
 * Finds the schemes whose verifiers accept a delivery with this secret, the strongest first.
 * @param now the clock (ms since the epoch)
 */
export async function findVerifiers(
  delivery: ReceivedDelivery,
  secret: string,
  now: () => number = Date.now,
): Promise<SigningOptions[]> {
  // Bounds the work; no sender has more headers.
  const fields = delivery.fields.slice(0, 64).map(([name, value]) => [name.toLowerCase(), value] as const)
  const seen = { ...delivery, fields }
  const candidates = finders.flatMap((find) => find(seen, secret))
  const accepted = await Promise.all(candidates.map((scheme) => accepts(scheme, now, delivery)))
  return candidates.filter((_, index) => accepted[index])
}

// Bounds the work; no sender has more.
const maxTimes = 4

/** Possible signing times (Unix seconds) in headers, or in entries such as `t=…`. */
export const timesIn = ({ fields }: Pick<ReceivedDelivery, 'fields'>): number[] =>
  fields
    .flatMap(([, value]) => value.split(','))
    .map((entry) => entry.slice(entry.indexOf('=') + 1))
    .filter((text) => unixTime.test(text))
    .slice(0, maxTimes)
    .map(Number)

const unixTime = /^\d{9,11}$/

async function accepts(scheme: SigningOptions, now: () => number, delivery: SignedDelivery): Promise<boolean> {
  try {
    return (await verifierFor(scheme, now).verify(delivery)).verified
  } catch {
    // The secret does not suit this scheme.
    return false
  }
}

type Finder = (delivery: ReceivedDelivery, secret: string) => SigningOptions[]

const standardWebhooks: Finder = (_, secret) => [
  { scheme: 'standard-webhooks', secret },
  { scheme: 'standard-webhooks', secret, headers: 'svix' },
]

/** Headers with a time and a hex digest, under any names. */
const timestampedSignature: Finder = ({ fields }, secret) =>
  fields.flatMap(([header, value]) => {
    const entries = value.split(',').map((entry) => entry.split('='))
    const findNames = (form: RegExp) =>
      new Set(entries.filter(([, text = '']) => form.test(text)).map(([name]) => name))
    const [time] = findNames(unixTime)
    const signatures = [...findNames(/^[\da-f]{64}$/i)].slice(0, 8)
    if (time === undefined) return []
    return signatures.map((signature = '') => ({
      scheme: 'timestamped-signature' as const,
      secret,
      header,
      ...withoutDefaults({ time, signature }),
    }))
  })

/** What services sign with a time, and without one. The default comes first and is left out of the code. */
const templates = {
  timed: [
    '{timestamp}.{body}',
    'v0:{timestamp}:{body}',
    '{timestamp}:{body}',
    '{timestamp}{body}',
    '{timestamp}.{url}.{body}',
  ],
  untimed: ['{body}', '{url}{body}', '{url}.{body}'],
} as const

/** Headers that end with an HMAC of the body, or of a template with it. What precedes it is the prefix. */
const hmacSignature: Finder = ({ fields, url, body }, secret) => {
  const found: SigningOptions[] = []
  const times = fields.filter(([, value]) => unixTime.test(value)).slice(0, maxTimes)
  for (const [timestampHeader, time = ''] of [...times, []]) {
    const known = templates[timestampHeader === undefined ? 'untimed' : 'timed']
    for (const signed of known) {
      const before = signed
        .slice(0, -'{body}'.length)
        .replace('{timestamp}', time)
        .replace('{url}', () => url)
      for (const [algorithm, encoding] of digests) {
        const digest = createHmac(algorithm, secret).update(before).update(body).digest(encoding)
        for (const [header, value] of fields) {
          const prefix = prefixBefore(digest, encoding === 'hex' ? lowerEnd(value, digest.length) : value)
          if (prefix === undefined) continue
          found.push({
            ...{ scheme: 'hmac-signature', secret, header },
            ...withoutDefaults({ algorithm, encoding, prefix }),
            ...(timestampHeader !== undefined && { timestampHeader }),
            ...(signed !== known[0] && { signed }),
          } as SigningOptions)
        }
      }
    }
  }
  return found
}

const digests = (['sha256', 'sha512', 'sha1'] as const).flatMap((algorithm: HashAlgorithm) =>
  (['hex', 'base64'] as const).map((encoding: SignatureEncoding) => [algorithm, encoding] as const),
)

/** Lower-cases the hex digits at the end, not the prefix. */
const lowerEnd = (value: string, length: number): string => value.slice(0, -length) + value.slice(-length).toLowerCase()

const basicAuth: Finder = ({ fields }, secret) =>
  fields.flatMap(([name, value]) => {
    const encoded = name === 'authorization' ? /^basic +(\S+)$/i.exec(value)?.[1] : undefined
    const credentials = Buffer.from(encoded ?? '', 'base64').toString()
    const username = prefixBefore(`:${secret}`, credentials, /^[^:]+$/)
    return username === undefined ? [] : [{ scheme: 'basic-auth' as const, username, password: secret }]
  })

const headerToken: Finder = ({ fields }, secret) =>
  fields.flatMap(([header, value]) => {
    const prefix = prefixBefore(secret, value)
    if (prefix === undefined) return []
    return [{ scheme: 'header-token' as const, secret, header, ...withoutDefaults({ prefix }) }]
  })

const urlToken: Finder = ({ url }, secret) => {
  const parameters = new Set(new URLSearchParams(/\?([^#]*)/.exec(url)?.[1]).keys())
  return [
    ...[...parameters].slice(0, 64).map((parameter) => ({
      scheme: 'url-token' as const,
      secret,
      ...withoutDefaults({ parameter }),
    })),
    { scheme: 'url-token', secret, in: 'path' },
  ]
}

const finders = [standardWebhooks, timestampedSignature, hmacSignature, basicAuth, headerToken, urlToken]

/** The prefix before a text at the end of a value: none, `Bearer `, `sha256=` and the like. */
function prefixBefore(text: string, value: string, form = /^([\w-]{1,32}[=:, ] ?)?$/): string | undefined {
  if (!value.endsWith(text)) return undefined
  const prefix = value.slice(0, value.length - text.length)
  return form.test(prefix) ? prefix : undefined
}

const defaults: Readonly<Record<string, string>> = {
  algorithm: 'sha256',
  encoding: 'hex',
  prefix: '',
  parameter: 'token',
  time: 't',
  signature: 'v1',
}

const withoutDefaults = (options: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(options).filter(([name, value]) => value !== defaults[name]))
