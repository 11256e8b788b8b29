import { createHmac } from 'node:crypto'
import type { HashAlgorithm } from '../../../index.ts'
import { quote, secretVariable } from '../../shared/schemes.ts'
import type { ReceivedDelivery } from './find-verifiers.ts'

/** A part of a header value, such as the signature in `t=1700000000,v1=5257a8…`. */
interface HeaderPart {
  readonly header: string
  /** What stands before it, such as `v1=`. */
  readonly label: string
  readonly text: string
}

/** An HMAC found in a header. */
export interface FoundDigest {
  readonly algorithm: HashAlgorithm
  readonly encoding: 'hex' | 'base64' | 'base64url'
  readonly digest: HeaderPart
  /** The signed time. Absent if only the body is signed. */
  readonly time: HeaderPart | undefined
  /** Between time and body in the signed text. */
  readonly separator: string
}

// Bound the work; no sender has more.
const maxHeaders = 64
const maxTimes = 8

const algorithms = ['sha256', 'sha512', 'sha1'] as const
const separators = ['.', ':', ''] as const
// Searched without padding, which is optional.
const encodings = ['hex', 'base64', 'base64url'] as const

/** Searches all headers for an HMAC of the body, or of a time from any header and the body. */
export function findDigest(delivery: ReceivedDelivery, secret: string): FoundDigest | undefined {
  const fields = delivery.fields.slice(0, maxHeaders).map(([name, value]) => [name.toLowerCase(), value] as const)
  const times = timesInside(fields).flatMap((time) => separators.map((separator) => ({ time, separator })))
  for (const { time, separator } of [...times, { time: undefined, separator: '' }]) {
    const signed = Buffer.concat([Buffer.from(time === undefined ? '' : `${time.text}${separator}`), delivery.body])
    for (const algorithm of algorithms) {
      const bytes = createHmac(algorithm, secret).update(signed).digest()
      for (const encoding of encodings) {
        const digest = partWith(bytes.toString(encoding).replace(/=+$/, ''), encoding, fields)
        if (digest !== undefined) return { algorithm, encoding, digest, time, separator }
      }
    }
  }
  return undefined
}

export function describeDigest({ algorithm, encoding, digest, time, separator }: FoundDigest): string {
  const signed = time === undefined ? 'the body' : `the time (${describePlace(time)}), '${separator}' and the body`
  return `The ${encoding} text (${describePlace(digest)}) is the HMAC-${algorithm.toUpperCase()} of ${signed}.`
}

const describePlace = ({ header, label }: HeaderPart): string =>
  `${label === '' ? 'in' : `after ${label} in`} the header ${header}`

/**
 * Code for a verifier that parses the header and leaves the rest to `hmacSignature`.
 * @returns `undefined` if `hmacSignature` can't verify this form
 */
export function codeFor({ algorithm, encoding, digest, time, separator }: FoundDigest): string | undefined {
  if (encoding === 'base64url') return undefined
  const characters = encoding === 'hex' ? '[0-9a-fA-F]' : '[A-Za-z0-9+/]'
  const pattern = `${digest.label}(${characters}{${digest.text.length}}${encoding === 'hex' ? '' : '=*'})`
  const options = [
    `secret: process.env.${secretVariable}!`,
    ...["header: 'signature'", "separator: ','"],
    ...(algorithm === 'sha256' ? [] : [`algorithm: '${algorithm}'`]),
    ...(encoding === 'hex' ? [] : [`encoding: '${encoding}'`]),
    ...(time === undefined ? [] : ["timestamp: { header: 'time' }"]),
    ...(time === undefined || separator === '.' ? [] : [`signed: '{timestamp}${separator}{body}'`]),
  ]
  return [
    `const hmac = hmacSignature({ ${options.join(', ')} })`,
    `const verify: Verifier = {`,
    `  name: ${quote(digest.header)},`,
    `  needsBytes: true,`,
    `  verify({ url, headers, body }) {`,
    `    const signatures = (headers.get(${quote(digest.header)}) ?? '').matchAll(/${escaped(pattern)}/g)`,
    `    const signature = [...signatures].map(([, text]) => text).join(',')`,
    ...(time === undefined
      ? ['    return hmac.verify({ url, headers: new Headers({ signature }), body })']
      : [
          `    const [, time = ''] = /${escaped(time.label)}(\\d+)/.exec(headers.get(${quote(time.header)}) ?? '') ?? []`,
          '    return hmac.verify({ url, headers: new Headers({ signature, time }), body })',
        ]),
    `  },`,
    `}`,
  ].join('\n')
}

type HeaderFields = readonly (readonly [name: string, value: string])[]

/** A name and its separator, at the end of a text. */
const labelBefore = /(?:^|[^\w-])([\w-]{1,32}[=:] ?"?)$/

/** Texts in headers that may be Unix seconds. */
function timesInside(fields: HeaderFields): HeaderPart[] {
  const times = fields.flatMap(([header, value]) =>
    [...value.matchAll(/(?<![\w.])(?:([\w-]{1,32}[=:] ?"?))?(\d{9,11})(?!\w)/g)].map(([, label = '', text = '']) => {
      return { header, label, text }
    }),
  )
  return times.slice(0, maxTimes)
}

function partWith(text: string, encoding: FoundDigest['encoding'], fields: HeaderFields): HeaderPart | undefined {
  for (const [header, value] of fields) {
    const at = (encoding === 'hex' ? value.toLowerCase() : value).indexOf(text)
    if (at === -1) continue
    const [, label = ''] = labelBefore.exec(value.slice(0, at)) ?? []
    return { header, label, text: value.slice(at, at + text.length) }
  }
  return undefined
}

/** Only slashes need escaping: labels contain no other special characters. */
const escaped = (pattern: string): string => pattern.replaceAll('/', '\\/')
