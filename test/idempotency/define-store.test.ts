import { expect, test } from 'vitest'
import { defineStore } from '../../src/index.ts'
import { untyped } from '../support/untyped.ts'

const steps = { claim: () => 'claimed', renew: () => true, complete: () => true, release: () => true }

test.each([undefined, null, 'text'])('defineStore throws invalid_option for %j, which holds no steps', (given) => {
  expect(() => defineStore(untyped(given))).toThrow(
    expect.objectContaining({
      code: 'invalid_option',
      message: expect.stringMatching(/^defineStore: claim must be/),
    }),
  )
})

test.each(Object.keys(steps))('defineStore throws invalid_option for steps without %s, and names it', (missing) => {
  const given = { ...steps, [missing]: undefined }
  expect(() => defineStore(untyped(given))).toThrow(
    expect.objectContaining({ code: 'invalid_option', message: `defineStore: ${missing} must be a function` }),
  )
})
