import { expect, test } from 'vitest'
import { defineInbox } from '../../src/index.ts'
import { untyped } from '../support/untyped.ts'

test.each([undefined, null, 'text', {}, { name: 'mapInbox' }])(
  'defineInbox throws invalid_option for %j, which is not a definition',
  (definition) => {
    expect(() => defineInbox(untyped(definition))).toThrow(
      expect.objectContaining({ code: 'invalid_option', message: 'defineInbox: give it { name, open }' }),
    )
  },
)
