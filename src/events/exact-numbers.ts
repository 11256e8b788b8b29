// JavaScript rounds numbers: 820982911946154508 becomes 820982911946154500, which may be the id of another event.
// `JSON.parse` tells a reviver the source of a number only on new runtimes, so the text is changed before it is parsed.

/** A string, or a number. */
const token = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/** Nothing shorter, without an exponent, is rounded. */
const mayBeRounded = /[\d.]{16}|\d[eE]/

/** Puts the numbers of a JSON text that would be rounded into quotes. Returns the text itself if there is none. */
export function exactNumbers(json: string): string {
  if (!mayBeRounded.test(json)) return json
  return json.replace(token, (each) => (each.startsWith('"') || isExact(each) ? each : `"${each}"`))
}

/** Integers are exact up to 2^53 - 1: beyond, another one may have the same value. */
const isExact = (number: string): boolean =>
  /^-?\d+$/.test(number) ? Number.isSafeInteger(Number(number)) : decimal(number) === decimal(String(Number(number)))

/** Writes a number as its digits, without zeros at either end, and the power of ten. */
function decimal(number: string): string | undefined {
  const [, whole = '', fraction = '', exponent = '0'] = /^-?(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(number) ?? []
  const digits = `${whole}${fraction}`.replace(/^0+/, '')
  const significant = digits.replace(/0+$/, '')
  if (significant === '') return whole === '' ? undefined : '0'
  return `${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`
}

/**
 * Writes what another parser made of a JSON text. Integers that it may have rounded get a fraction, so that they are not
 * taken for the digits that were sent.
 */
export function writeRounded(value: unknown): string | undefined {
  const json: string | undefined = JSON.stringify(value)
  if (json === undefined || !mayBeRounded.test(json)) return json
  return json.replace(token, (each) => (/^-?\d+$/.test(each) && !isExact(each) ? `${each}.0` : each))
}
