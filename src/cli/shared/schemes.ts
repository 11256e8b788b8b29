import { type SigningOptions, verifierFor } from '../../service/emulator/sending/signing.ts'
import type { CommandInput } from './command.ts'
import { choice, flagName, text, UsageError } from './flags.ts'
import { plain } from './text.ts'

/** Environment variable of the secret, for flags and for code to paste. */
export const secretVariable = 'MEDIA_WEBHOOKS_SECRET'

export const schemeFlags = {
  secret: text('<text>', 'the shared secret', secretVariable),
  header: text('<name>', 'the header of the token or signature'),
  prefix: text('<text>', "the text before it in the header, such as 'Bearer ' or sha256="),
  parameter: text('<name>', 'url-token: the query parameter (default: token)'),
  in: choice(['query', 'path'], 'url-token: the place of the token in the URL (default: query)'),
  username: text('<text>', 'basic-auth: the username'),
  password: text('<text>', 'basic-auth: the password', secretVariable),
  algorithm: choice(['sha1', 'sha256', 'sha512'], 'hmac-signature: the hash (default: sha256)'),
  encoding: choice(['hex', 'base64'], 'hmac-signature: the encoding of the signature (default: hex)'),
  timestampHeader: text('<name>', 'hmac-signature: the header of the time, if the signature covers time and body'),
  signed: text('<template>', 'hmac-signature: what is signed, such as v0:{timestamp}:{body}'),
  headers: choice(['webhook', 'svix'], "standard-webhooks: what the headers' names begin with (default: webhook)"),
  time: text('<name>', 'timestamped-signature: the name of the time in the header (default: t)'),
  signature: text('<name>', 'timestamped-signature: the name of each signature in the header (default: v1)'),
}

type SchemeFlag = keyof typeof schemeFlags

const schemes = {
  'url-token': { needs: ['secret'], takes: ['parameter', 'in'] },
  'header-token': { needs: ['secret', 'header'], takes: ['prefix'] },
  'basic-auth': { needs: ['username', 'password'], takes: [] },
  'hmac-signature': {
    needs: ['secret', 'header'],
    takes: ['prefix', 'algorithm', 'encoding', 'timestampHeader', 'signed'],
  },
  'standard-webhooks': { needs: ['secret'], takes: ['headers'] },
  'timestamped-signature': { needs: ['secret', 'header'], takes: ['time', 'signature'] },
  unverified: { needs: [], takes: [] },
} as const satisfies Record<string, { needs: readonly SchemeFlag[]; takes: readonly SchemeFlag[] }>

type SchemeName = keyof typeof schemes

export const schemeChoice = (help: string) => {
  const names = Object.keys(schemes) as SchemeName[]
  return { ...choice(names, `${help}: ${names.join(', ')}`), takes: '<scheme>' }
}

/**
 * @param free flags that the command also uses without a scheme
 * @returns `undefined` for no scheme or `unverified`
 * @throws UsageError if a required flag is missing or a flag belongs to another scheme
 */
export function readScheme(
  chooser: '--sign' | '--verify',
  name: SchemeName | undefined,
  { values, given }: Pick<CommandInput<typeof schemeFlags>, 'values' | 'given'>,
  free: readonly SchemeFlag[] = [],
): SigningOptions | undefined {
  const { needs, takes }: { needs: readonly SchemeFlag[]; takes: readonly SchemeFlag[] } = schemes[name ?? 'unverified']
  const used = [...needs, ...takes]
  for (const flag of Object.keys(schemeFlags) as SchemeFlag[]) {
    if (!given.has(flag) || used.includes(flag) || free.includes(flag)) continue
    throw new UsageError(
      `${flagName(flag)} goes with ${chooser} ${schemesWith(flag)}${name === undefined ? '' : `, not ${name}`}`,
    )
  }
  for (const flag of needs) {
    const { takes: what, env } = schemeFlags[flag]
    if (values[flag] !== undefined) continue
    throw new UsageError(`${chooser} ${name} needs ${flagName(flag)} ${what}${env === undefined ? '' : ` (or ${env})`}`)
  }
  if (name === undefined || name === 'unverified') return undefined
  const options = used.filter((flag) => values[flag] !== undefined).map((flag) => [flag, values[flag]])
  const scheme = { scheme: name, ...Object.fromEntries(options) } as SigningOptions
  // Building the verifier validates its options, such as a secret with a trailing newline.
  verifierFor(scheme)
  return scheme
}

/** The scheme's secret. Must not be printed. */
export const secretOf = (scheme: SigningOptions): string => ('password' in scheme ? scheme.password : scheme.secret)

export const signsBody = ({ scheme }: SigningOptions): boolean =>
  scheme === 'hmac-signature' || scheme === 'standard-webhooks' || scheme === 'timestamped-signature'

/** `true` if the last path segment is the secret. */
export const hasTokenInPath = (scheme: SigningOptions | undefined): boolean =>
  scheme?.scheme === 'url-token' && scheme.in === 'path'

const schemesWith = (flag: SchemeFlag): string =>
  Object.entries(schemes)
    .filter(([, { needs, takes }]) => [...needs, ...takes].some((each) => each === flag))
    .map(([name]) => name)
    .join(', ')

/** Code that creates the verifier, with the secret read from the environment. */
export function lineFor({ scheme, ...options }: SigningOptions): string {
  const members = Object.entries(options).map(([name, value]) => {
    if (name === 'secret' || name === 'password') return `${name}: process.env.${secretVariable}!`
    return name === 'timestampHeader' ? `timestamp: { header: ${quote(value)} }` : `${name}: ${quote(value)}`
  })
  const verifier = scheme.replace(/-[a-z]/g, (match) => match.slice(1).toUpperCase())
  return `${verifier}({ ${members.join(', ')} })`
}

export const quote = (value: string): string => `'${plain(value.replace(/['\\]/g, '\\$&'))}'`
