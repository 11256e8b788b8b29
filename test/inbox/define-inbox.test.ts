import { expect, test } from 'vitest'
import { defineInbox } from '../../src/index.ts'

test.each([undefined, null, 'text', {}, { name: 'mapInbox' }])(
  'defineInbox throws invalid_option for %j, which is no definition',
  (definition) => {
    expect(() => defineInbox(definition as never)).toThrow(
      expect.objectContaining({ code: 'invalid_option', message: 'defineInbox: give it { name, open }' }),
    )
  },
)
