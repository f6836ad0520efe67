/* SPDX-License-Identifier: MIT */
#include "persist/partition.h"

/* Made by tools/partition_tags.py. Bare numbers would fall unevenly: with these, 2, 3, 4, 6, 8, 12 or 16
 * shards of equal slot ranges get equal numbers of partitions. */
/* clang-format off */
static const char *const tags[PARTITIONS_MAX] = {
	"p0o", "p1d", "p2uo", "p3f", "p4yd", "p5zb", "p6x", "p7j", "p8r", "p9os", "p10xw", "p11es",
	"p12yw", "p13ju", "p14wg", "p15v", "p16ns", "p17cs", "p18ro", "p19am", "p20by", "p21cd", "p22kt", "p23xv",
	"p24nj", "p25ml", "p26ea", "p27te", "p28pv", "p29ct", "p30ax", "p31lx", "p32tq", "p33eu", "p34xz", "p35ke",
	"p36yz", "p37jx", "p38nk", "p39pn", "p40ux", "p41", "p42eg", "p43vx", "p44kw", "p45k", "p46bz", "p47qx",
};
/* clang-format on */

uint16_t partition_crc16(struct bytes b)
{
	static uint16_t table[256];

	if (table[1] == 0) {
		for (unsigned i = 0; i < 256; i++) {
			uint16_t crc = (uint16_t)(i << 8);
			for (int bit = 0; bit < 8; bit++)
				crc = (uint16_t)(crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1);
			table[i] = crc;
		}
	}
	uint16_t crc = 0;
	for (size_t i = 0; i < b.n; i++)
		crc = (uint16_t)(crc << 8 ^ table[(crc >> 8 ^ (unsigned char)b.p[i]) & 0xff]);
	return crc;
}

int partition_of(struct bytes id, int count)
{
	return partition_crc16(id) % count;
}

const char *partition_tag(int partition, int count)
{
	return partition == count ? "org" : tags[partition];
}
