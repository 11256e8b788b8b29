const text = (value: string) => new TextEncoder().encode(value)
const bytes = (value: number, length: number) => new Uint8Array(length).fill(value)
const counting = Uint8Array.from({ length: 25 }, (_, index) => index + 1)

const sha1 = 'sha1' as const
const sha256 = 'sha256' as const
const sha512 = 'sha512' as const

const hashedFirst = text('Test Using Larger Than Block-Size Key - Hash Key First')
const bothLarge = text(
  'This is a test using a larger than block-size key and a larger than block-size data. ' +
    'The key needs to be hashed before being used by the HMAC algorithm.',
)
const bothLarge1 = text('Test Using Larger Than Block-Size Key and Larger Than One Block-Size Data')

/** The test vectors of RFC 2202 (SHA-1) and RFC 4231 (SHA-2), without the truncated ones. */
export const hmacVectors = [
  {
    of: 'a short string',
    key: bytes(0x0b, 20),
    data: text('Hi There'),
    [sha1]: 'b617318655057264e28bc0b6fb378c8ef146be00',
    [sha256]: 'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7',
    [sha512]:
      '87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cdedaa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854',
  },
  {
    of: 'a short key',
    key: text('Jefe'),
    data: text('what do ya want for nothing?'),
    [sha1]: 'effcdf6ae5eb2fa2d27416d5f184df9c259a7c79',
    [sha256]: '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    [sha512]:
      '164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737',
  },
  {
    of: 'high bytes',
    key: bytes(0xaa, 20),
    data: bytes(0xdd, 50),
    [sha1]: '125d7342b9ac11cd91a39af48aa17b4f63f175d3',
    [sha256]: '773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe',
    [sha512]:
      'fa73b0089d56a284efb0f0756c890be9b1b5dbdd8ee81a3655f83e33b2279d39bf3e848279a722c806b485a47e67c807b946a337bee8942674278859e13292fb',
  },
  {
    of: 'a key of 25 bytes',
    key: counting,
    data: bytes(0xcd, 50),
    [sha1]: '4c9007f4026250c6bc8414f9bf50c86c2d7235da',
    [sha256]: '82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b',
    [sha512]:
      'b0ba465637458c6990e5a8c5f61d4af7e576d97ff94b872de76f8050361ee3dba91ca5c11aa25eb4d679275cc5788063a5f19741120c4f2de2adebeb10a298dd',
  },
  {
    of: 'a key longer than a block',
    key: bytes(0xaa, 80),
    data: hashedFirst,
    [sha1]: 'aa4ae5e15272d00e95705637ce8a3b55ed402112',
  },
  {
    of: 'a key longer than a block',
    key: bytes(0xaa, 131),
    data: hashedFirst,
    [sha256]: '60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54',
    [sha512]:
      '80b24263c7c1a3ebb71493c1dd7be8b49b46d1f41b4aeec1121b013783f8f3526b56d037e05f2598bd0fd2215d6a1e5295e64f73f63f0aec8b915a985d786598',
  },
  {
    of: 'key and data longer than a block',
    key: bytes(0xaa, 80),
    data: bothLarge1,
    [sha1]: 'e8e99d0f45237d786d6bbaa7965c7808bbff1a91',
  },
  {
    of: 'key and data longer than a block',
    key: bytes(0xaa, 131),
    data: bothLarge,
    [sha256]: '9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2',
    [sha512]:
      'e37b6a775dc87dbaa4dfa9f96e5e3ffddebd71f8867289865df5a32d20cdc944b6022cac3c4982b10d5eeb55c3e4de15134676fb6de0446065c97440fa8c6a58',
  },
].flatMap(({ of, key, data, ...hmacs }) =>
  [sha1, sha256, sha512].flatMap((algorithm) => {
    const hmac = (hmacs as Partial<Record<typeof algorithm, string>>)[algorithm]
    return hmac === undefined ? [] : [{ of, algorithm, key, data, hmac }]
  }),
)
