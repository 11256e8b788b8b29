import { checkChoice, checkNumbers, largestCache } from '../../check-options.ts'
import { WebhookError } from '../../errors.ts'
import { profiles } from '../sending/profile.ts'
import type { EmulatorOptions } from './options.ts'

const owner = 'createEmulator'

const known = {
  port: true,
  profile: true,
  timeScale: true,
  publicKey: true,
  secretKey: true,
  accessToken: true,
  maxWaiting: true,
  maxRecords: true,
  clock: true,
} satisfies Record<keyof EmulatorOptions, true>

/**
 * Checks the options at run time, for callers without types.
 * @throws WebhookError `invalid_option`
 */
export function checkEmulatorOptions(options: EmulatorOptions): void {
  const unknown = Object.keys(options).filter((name) => !Object.hasOwn(known, name))
  // A misspelled option would be ignored silently.
  if (unknown.length > 0) {
    throw invalid(`there is no option ${unknown.join(', ')}; there are ${Object.keys(known).join(', ')}`)
  }
  const { port = 0, profile = 'documented', timeScale = 1, maxWaiting = 1, maxRecords = 1, clock } = options
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw invalid('port has to be a whole number from 0 to 65535')
  checkChoice(owner, 'profile', profile, profiles)
  if (typeof timeScale !== 'number' || !(timeScale >= 0 && timeScale <= 1_000)) {
    throw invalid('timeScale has to be a number from 0 to 1000')
  }
  checkNumbers(owner, { maxWaiting, maxRecords }, largestCache)
  if (clock !== undefined && !(typeof clock === 'function' && isTime(clock()))) {
    throw invalid('clock has to be a function that returns the nanoseconds since 1970, as a bigint')
  }
  for (const name of ['publicKey', 'secretKey', 'accessToken'] as const) checkCredential(name, options[name])
}

/** `true` for a time that a timestamp can state: until the year 9999. */
const isTime = (value: unknown): boolean =>
  typeof value === 'bigint' && value >= 0n && value < 253_402_300_800_000_000_000n

function checkCredential(name: string, value: unknown): void {
  if (value === undefined) return
  if (typeof value !== 'string' || !/^[\x21-\x7e]+$/.test(value)) {
    throw invalid(`${name} has to be printable ASCII without spaces (a newline at its end? an empty variable?)`)
  }
  if (name === 'publicKey' && value.includes(':'))
    throw invalid('publicKey must not contain a colon: Basic authorization could not carry it')
}

const invalid = (message: string): WebhookError => new WebhookError('invalid_option', `${owner}: ${message}`)
