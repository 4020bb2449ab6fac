//! Images: CIFAR-10's files, generated ones, and batches of both.

use std::sync::Arc;

use gnntop_data::images::{CLASS_NAMES, ImageBatch, ImageBatches, ImageSet, NoSuchImage, PIXELS, SIDE, generate, read};
use gnntop_data::loading::{Loader, LoaderSettings};

use crate::shared::shared;

/// Mean and deviation of each channel, of 1.
fn channels(set: &ImageSet) -> [(f64, f64); 3] {
    std::array::from_fn(|channel| {
        let values = || (0..set.len()).flat_map(|image| &set.image(image)[channel * PIXELS..][..PIXELS]);
        let count = (set.len() * PIXELS) as f64;
        let mean = values().map(|&value| f64::from(value)).sum::<f64>() / count;
        let variance = values().map(|&value| (f64::from(value) - mean).powi(2)).sum::<f64>() / count;
        (mean / 255.0, variance.sqrt() / 255.0)
    })
}

fn per_class(set: &ImageSet) -> [usize; 10] {
    let mut counts = [0; 10];
    set.labels.iter().for_each(|&label| counts[label as usize] += 1);
    counts
}

#[test]
#[cfg_attr(not(shared_data), ignore = "needs data sets beside the repository: CONTRIBUTING.md")]
fn real_images_have_the_published_numbers() {
    let data = read(&shared("data/cifar10_1000")).unwrap();
    assert_eq!((data.train.len(), data.test.len(), per_class(&data.train)), (1_000, 0, [100; 10]));
    let names: Vec<_> = data.train.labels[..3].iter().map(|&label| CLASS_NAMES[label as usize]).collect();
    assert_eq!(names, ["frog", "truck", "truck"]);
    for ((mean, deviation), (expected_mean, expected_deviation)) in
        channels(&data.train).into_iter().zip([(0.4933, 0.2470), (0.4831, 0.2425), (0.4472, 0.2587)])
    {
        assert!((mean - expected_mean).abs() < 1e-4 && (deviation - expected_deviation).abs() < 1e-4);
    }
    assert_eq!(read(&shared("data/cifar10_1000/data_batch_1.bin")).unwrap().train.pixels, data.train.pixels);
}

/// A record of one class and one value for all pixels of a channel.
fn record(class: u8, colour: [u8; 3]) -> Vec<u8> {
    [vec![class], vec![colour[0]; PIXELS], vec![colour[1]; PIXELS], vec![colour[2]; PIXELS]].concat()
}

#[test]
fn a_directory_of_batches_is_read_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| std::fs::write(directory.path().join(name), content).unwrap();
    write("data_batch_2.bin", &record(7, [1, 2, 3]));
    write("data_batch_1.bin", &[record(9, [4, 5, 6]), record(0, [7, 8, 9])].concat());
    write("test_batch.bin", &record(3, [0, 128, 255]));
    write("batches.meta.txt", b"airplane\n");
    let data = read(directory.path()).unwrap();
    assert_eq!((&data.train.labels[..], &data.test.labels[..]), (&[9, 0, 7][..], &[3][..]));
    assert_eq!(data.train.image(2)[PIXELS], 2);
    let alone = read(&directory.path().join("test_batch.bin")).unwrap();
    assert_eq!((alone.train.len(), alone.test.len()), (0, 1));
}

#[test]
fn what_is_wrong_with_images_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let failure =
        || read(directory.path()).unwrap_err().to_string().replace(&directory.path().display().to_string(), "DIR");
    assert!(failure().starts_with("no images found in DIR; looked for data_batch_1.bin"), "{}", failure());
    let file = directory.path().join("data_batch_1.bin");
    let expected = "expected 1 to 1000000 records of 3073 bytes (1 class, 3072 pixel values)";
    for bytes in [0, 1, 3_072, 3_074] {
        std::fs::write(&file, vec![0; bytes]).unwrap();
        assert_eq!(failure(), format!("DIR/data_batch_1.bin has {bytes} bytes; {expected}"));
    }
    // A file of zeros that takes no room.
    std::fs::File::create(&file).unwrap().set_len(3_073 * 1_000_001).unwrap();
    assert_eq!(failure(), format!("DIR/data_batch_1.bin has 3073003073 bytes; {expected}"));
    std::fs::write(&file, [record(9, [0; 3]), record(10, [0; 3])].concat()).unwrap();
    assert_eq!(failure(), "DIR/data_batch_1.bin, record 1 (from 0): the class is 10; expected 0 to 9");
    assert!(read(&directory.path().join("absent")).unwrap_err().to_string().starts_with("cannot read"));
}

#[test]
fn a_batch_has_a_node_for_each_pixel() {
    let set = generate(25, 1);
    let mut batch = ImageBatch::default();
    batch.assemble(&set, &[7, 3]).unwrap();
    assert_eq!((batch.images(), batch.features.len(), &batch.labels[..]), (2, 2 * PIXELS * 3, &[7, 3][..]));
    for (place, image) in [(0, 7), (1, 3)] {
        for (row, column, channel) in [(0, 0, 0), (0, 31, 1), (17, 5, 2), (31, 31, 2)] {
            let node = place * PIXELS + row * SIDE + column;
            let byte = set.image(image)[channel * PIXELS + row * SIDE + column];
            assert_eq!(batch.features[node * 3 + channel], f32::from(byte) / 255.0);
        }
    }
    let memory = batch.features.as_ptr();
    batch.assemble(&set, &[24]).unwrap();
    assert_eq!((batch.images(), batch.features.len(), batch.features.as_ptr()), (1, PIXELS * 3, memory));
    assert_eq!(batch.assemble(&set, &[0, 25]), Err(NoSuchImage { index: 25, images: 25 }));
    assert_eq!((batch.images(), batch.features.len()), (0, 0));
    batch.assemble(&set, &[]).unwrap();
    assert_eq!(batch.images(), 0);
}

#[test]
fn batches_of_a_loader_do_not_depend_on_its_workers() {
    let set = Arc::new(generate(25, 3));
    let batches = |workers: usize| {
        let settings = LoaderSettings { batch_size: 8, workers, seed: 5, ..LoaderSettings::default() };
        let mut loader = Loader::new(ImageBatches::new(Arc::clone(&set)), settings).unwrap();
        (0..8).map(|_| loader.next_batch().unwrap().clone()).collect::<Vec<ImageBatch>>()
    };
    let expected = batches(0);
    assert_eq!(expected.iter().map(ImageBatch::images).collect::<Vec<_>>(), [8, 8, 8, 1, 8, 8, 8, 1]);
    assert!(expected == batches(2));
}

/// Test accuracy of the nearest of the training images by `view`.
fn nearest(train: &ImageSet, test: &ImageSet, view: &dyn Fn(&[u8]) -> Vec<f32>) -> f64 {
    let known: Vec<Vec<f32>> = (0..train.len()).map(|image| view(train.image(image))).collect();
    let right = |&image: &usize| {
        let seen = view(test.image(image));
        let distance = |other: &[f32]| seen.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum::<f32>();
        let best = (0..known.len()).min_by(|&a, &b| distance(&known[a]).total_cmp(&distance(&known[b]))).unwrap();
        train.labels[best] == test.labels[image]
    };
    (0..test.len()).filter(right).count() as f64 / test.len() as f64
}

/// Squared differences of brightness to a place right of, below, and below right of each pixel, at several distances:
/// texture, whatever the colour and the place.
fn texture(image: &[u8]) -> Vec<f32> {
    let bright = |row: usize, column: usize| {
        (0..3).map(|channel| f32::from(image[channel * PIXELS + row * SIDE + column])).sum::<f32>() / 3.0
    };
    let mut view = Vec::new();
    for distance in [1, 2, 3, 5, 8, 12] {
        for (down, right) in [(0, distance), (distance, 0), (distance, distance)] {
            let mut sum = 0.0;
            for row in 0..SIDE - down {
                for column in 0..SIDE - right {
                    sum += (bright(row, column) - bright(row + down, column + right)).powi(2);
                }
            }
            view.push(sum);
        }
    }
    let total: f32 = view.iter().sum();
    view.iter().map(|value| value / total).collect()
}

#[test]
fn generated_images_look_like_cifars_and_can_be_told_apart() {
    let set = generate(2_000, 3);
    assert_eq!((set.len(), per_class(&set)), (2_000, [200; 10]));
    for (mean, deviation) in channels(&set) {
        println!("mean {mean:.3}, deviation {deviation:.3}");
        assert!((mean - 0.475).abs() < 0.04 && (deviation - 0.25).abs() < 0.04);
    }
    let test = generate(300, 4);
    let colours =
        |image: &[u8]| image.chunks(PIXELS).map(|values| values.iter().map(|&value| f32::from(value)).sum()).collect();
    let (by_colour, by_texture) = (nearest(&set, &test, &colours), nearest(&set, &test, &texture));
    println!("nearest by mean colour {by_colour:.3}, by texture {by_texture:.3}");
    assert!(by_colour > 0.12 && by_colour < 0.30);
    assert!(by_texture > 0.40);
}

#[test]
fn a_seed_stands_for_its_images() {
    assert_eq!(generate(50, 1), generate(50, 1));
    assert_eq!(generate(50, 1).pixels[..20 * 3 * PIXELS], generate(20, 1).pixels[..]);
    assert_ne!(generate(50, 1).pixels, generate(50, 2).pixels);
    assert!(generate(0, 1).is_empty());
}
