import { WebhookError } from '../../../errors.ts'
import { checkOptions, maxCache, oneOf, type Rule, type Rules, wholeNumber } from '../../../internal/check-options.ts'
import { profiles } from '../sending/profile.ts'
import type { EmulatorOptions } from './options.ts'

const owner = 'createEmulator'

const timeScale: Rule = [
  'a number from 0 to 1000',
  (value: unknown) => typeof value === 'number' && value >= 0 && value <= 1_000,
]

const credential: Rule = [
  'printable ASCII without spaces (a newline at its end? an empty variable?)',
  (value: unknown) => typeof value === 'string' && /^[\x21-\x7e]+$/.test(value),
]

/** Up to the year 9999, the last a timestamp can express. */
const isTime = (value: unknown): boolean =>
  typeof value === 'bigint' && value >= 0n && value < 253_402_300_800_000_000_000n

const clock: Rule = [
  'a function that returns the nanoseconds since 1970, as a bigint',
  (value: unknown) => typeof value === 'function' && isTime(value()),
]

const rules: Rules<EmulatorOptions> = {
  port: wholeNumber(65_535, 0),
  profile: oneOf(...profiles),
  timeScale,
  publicKey: credential,
  secretKey: credential,
  accessToken: credential,
  maxWaiting: wholeNumber(maxCache),
  maxRecords: wholeNumber(maxCache),
  clock,
}

/** @throws WebhookError `invalid_option` */
export function checkEmulatorOptions(options: EmulatorOptions): void {
  checkOptions(owner, options, rules)
  if (options.publicKey?.includes(':'))
    throw new WebhookError(
      'invalid_option',
      `${owner}: publicKey must not contain a colon: Basic authorization could not carry it`,
    )
}
